#include "server/rpc/header_blocks.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr std::uint8_t kHeaders = 1, kPushPromise = 5, kContinuation = 9;  // Types of frames.
constexpr std::uint8_t kEndHeaders = 4;                                    // A flag.

}  // namespace

bool HeaderBlocks::Feed(absl::Span<const std::uint8_t> bytes) {
  while (!bytes.empty() && !too_long()) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
      continue;
    }
    head_[have_++] = bytes.front();
    bytes.remove_prefix(1);
    if (have_ == head_.size()) OnFrame();
  }
  return !too_long();
}

void HeaderBlocks::OnFrame() {
  const std::size_t length = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  const std::uint8_t type = head_[3], flags = head_[4];
  have_ = 0;
  skip_ = length;
  if (type != kHeaders && type != kPushPromise && type != kContinuation) return;
  block_ += std::max(head_.size() + length, kLeastOfFrame);
  if (!too_long() && (flags & kEndHeaders) != 0) block_ = 0;
}

}  // namespace gridclock
