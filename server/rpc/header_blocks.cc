#include "server/rpc/header_blocks.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr std::uint8_t kHeaders = 1, kContinuation = 9;    // Types of frames.
constexpr std::uint8_t kEndHeaders = 4, kPriority = 0x20;  // Flags.
constexpr std::size_t kPriorityBytes = 5;

}  // namespace

bool HeaderBlocks::Feed(absl::Span<const std::uint8_t> bytes) {
  while (!bytes.empty() && !failed()) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
    } else if (headers_ > 0) {
      const std::size_t taken = std::min(headers_, bytes.size());
      fields_.Feed(bytes.first(taken));
      headers_ -= taken;
      bytes.remove_prefix(taken);
    } else {
      head_[have_++] = bytes.front();
      bytes.remove_prefix(1);
      if (have_ == head_.size()) OnFrame();
    }
    if (skip_ == 0 && headers_ == 0 && ends_block_) OnEndOfBlock();
  }
  return !failed();
}

// As gRPC reads it: it skips a PUSH_PROMISE, takes padding for headers, and headers of a stream
// that only a server may begin for nothing.
void HeaderBlocks::OnFrame() {
  const std::size_t length = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  const std::uint8_t type = head_[3], flags = head_[4];
  have_ = 0;
  skip_ = length;
  if (type != kHeaders && type != kContinuation) return;
  block_ += std::max(head_.size() + length, kLeastOfFrame);
  if (type == kHeaders) of_client_ = head_[8] % 2 == 1;
  const bool priority = type == kHeaders && (flags & kPriority) != 0;
  skip_ = priority ? std::min(kPriorityBytes, length) : 0;
  headers_ = length - skip_;
  ends_block_ = (flags & kEndHeaders) != 0;
}

void HeaderBlocks::OnEndOfBlock() {
  ends_block_ = false;
  if (too_long()) return;
  const std::size_t fields = fields_.count();
  block_ = 0;
  fields_ = {};
  refused_ = of_client_ && !begun_(fields);
}

}  // namespace gridclock
