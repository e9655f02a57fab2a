#include "kernels/device/cuda/pinned_range.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace gridclock {

PinnedRange::PinnedRange(std::span<std::byte> range, Driver driver)
    : range_(range),
      driver_(std::move(driver)),
      pinned_((range.size() + kPieceBytes - 1) / kPieceBytes) {}

PinnedRange::~PinnedRange() {
  for (std::size_t i = 0; i < pinned_.size(); ++i) {
    if (pinned_[i]) driver_.unpin(range_.data() + i * kPieceBytes);
  }
}

bool PinnedRange::Contains(const std::byte* data, std::size_t bytes) const {
  return data >= range_.data() && bytes <= range_.size() &&
         static_cast<std::size_t>(data - range_.data()) <= range_.size() - bytes;
}

absl::Status PinnedRange::ForEachPiece(
    const std::byte* data, std::size_t bytes,
    absl::FunctionRef<absl::Status(std::size_t, std::size_t)> piece) {
  const auto first = static_cast<std::size_t>(data - range_.data());
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t index = (first + done) / kPieceBytes, begin = index * kPieceBytes;
    const std::size_t end = std::min(begin + kPieceBytes, range_.size());
    if (!pinned_[index]) {
      GC_RETURN_IF_ERROR(driver_.pin(range_.subspan(begin, end - begin)));
      pinned_[index] = true;
    }
    const std::size_t part = std::min(bytes - done, end - (first + done));
    GC_RETURN_IF_ERROR(piece(done, part));
    done += part;
  }
  return absl::OkStatus();
}

}  // namespace gridclock
