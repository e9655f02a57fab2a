#include "kernels/worker/staging.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {

absl::Status Staging::Prepare() {
  if (memory_ != nullptr) return absl::OkStatus();
  void* data = ::operator new[](2 * kPiece, std::align_val_t{4096}, std::nothrow);
  if (data == nullptr) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat(
            "want ", 2 * kPiece, " bytes of host memory for copies to and from the device")),
        "MEMORY_FULL");
  }
  memory_.reset(static_cast<std::byte*>(data));
  return device_.RegisterHost({memory_.get(), 2 * kPiece});
}

absl::Status Staging::Receive(const std::byte* from, std::uint64_t bytes,
                              absl::FunctionRef<void(std::span<const std::byte> piece)> take) {
  GC_RETURN_IF_ERROR(Prepare());
  const auto size = [bytes](std::uint64_t offset) {
    return std::min<std::uint64_t>(kPiece, bytes - offset);
  };
  const auto fetch = [&](std::uint64_t index) {
    const std::uint64_t offset = index * kPiece;
    if (offset >= bytes) return absl::OkStatus();
    return device_.CopyOut(Half(index, size(offset)), from + offset);
  };
  GC_RETURN_IF_ERROR(fetch(0));
  for (std::uint64_t index = 0; index * kPiece < bytes; ++index) {
    GC_RETURN_IF_ERROR(device_.Synchronize());
    GC_RETURN_IF_ERROR(fetch(index + 1));  // Travels while this piece is taken.
    take(Half(index, size(index * kPiece)));
  }
  return absl::OkStatus();
}

}  // namespace gridclock
