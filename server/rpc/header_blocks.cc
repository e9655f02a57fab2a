#include "server/rpc/header_blocks.h"

#include <algorithm>
#include <utility>

namespace gridclock {
namespace {

constexpr std::uint8_t kHeaders = 1, kPushPromise = 5, kContinuation = 9;  // Types of frames.
constexpr std::uint8_t kEndHeaders = 4, kPadded = 8, kPriority = 0x20;     // Flags.

}  // namespace

bool HeaderBlocks::Feed(absl::Span<const std::uint8_t> bytes) {
  while (!bytes.empty() && !failed()) {
    if (lead_ > 0) {
      OnLead(bytes.front());
      bytes.remove_prefix(1);
    } else if (headers_ > 0) {
      const std::size_t taken = std::min(headers_, bytes.size());
      fields_.Feed(bytes.first(taken));
      headers_ -= taken;
      bytes.remove_prefix(taken);
    } else if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
    } else {
      head_[have_++] = bytes.front();
      bytes.remove_prefix(1);
      if (have_ == head_.size()) OnFrame();
    }
    if (lead_ == 0 && headers_ == 0 && ends_block_) OnEndOfBlock();
  }
  return !failed();
}

void HeaderBlocks::OnFrame() {
  const std::size_t length = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  const std::uint8_t type = head_[3], flags = head_[4];
  have_ = 0;
  if (type != kHeaders && type != kPushPromise && type != kContinuation) {
    skip_ = length;
    return;
  }
  block_ += std::max(head_.size() + length, kLeastOfFrame);
  if (type == kHeaders) {
    stream_ = std::uint32_t{head_[5] & 0x7fU} << 24 | std::uint32_t{head_[6]} << 16 |
              std::uint32_t{head_[7]} << 8 | head_[8];
  }
  padded_ = type == kHeaders && (flags & kPadded) != 0;
  const bool priority = type == kHeaders && (flags & kPriority) != 0;
  lead_ = std::min<std::size_t>((padded_ ? 1 : 0) + (priority ? 5 : 0), length);
  headers_ = length - lead_;
  skip_ = 0;
  ends_block_ = (flags & kEndHeaders) != 0;
}

void HeaderBlocks::OnLead(std::uint8_t byte) {
  --lead_;
  if (!std::exchange(padded_, false)) return;
  const std::size_t padding = std::min<std::size_t>(byte, headers_);
  headers_ -= padding;
  skip_ = padding;
}

void HeaderBlocks::OnEndOfBlock() {
  ends_block_ = false;
  if (too_long()) return;
  const std::size_t fields = fields_.count();
  block_ = 0;
  fields_ = {};
  // A stream's second block is its trailers.
  if (stream_ <= last_) return;
  last_ = stream_;
  refused_ = !begun_(fields);
}

}  // namespace gridclock
