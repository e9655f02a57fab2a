#include <cstring>

#include "tests/conformance/world.h"

namespace gridclock {

absl::StatusOr<bool> Repeats(Device&, const void* data, std::uint64_t bytes, std::uint64_t period) {
  return std::memcmp(data, static_cast<const std::byte*>(data) + period, bytes - period) == 0;
}

}  // namespace gridclock
