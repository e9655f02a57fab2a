#include "kernels/worker/memory_limit.h"

#include <algorithm>

namespace gridclock {

std::uint64_t PrivateMemoryLimit(const MemoryNeeds& needs, std::uint64_t machine_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{512} << 20;
  // A saved copy of all that is in the arena, and as much scratch.
  const std::uint64_t wanted = 2 * needs.arena_bytes + needs.flush_bytes + needs.runtime_bytes;
  const std::uint64_t others = needs.arena_bytes + machine_bytes / 8;
  const std::uint64_t left = machine_bytes - std::min(machine_bytes, others);
  return std::max(kLeast, std::min(wanted, left));
}

}  // namespace gridclock
