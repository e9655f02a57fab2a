#include "client/cpp/buffer.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace gridclock {

absl::StatusOr<Buffer> Buffer::Create(std::uint64_t size) {
  constexpr std::uint64_t kAlign = 64;
  Buffer buffer;
  if (size == 0) return buffer;
  if (size <= std::numeric_limits<std::size_t>::max() - kAlign) {
    const std::size_t rounded = (size + kAlign - 1) / kAlign * kAlign;
    buffer.bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlign, rounded)));
  }
  if (buffer.bytes_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory here for ", size, " bytes"));
  }
  buffer.size_ = size;
  return buffer;
}

}  // namespace gridclock
