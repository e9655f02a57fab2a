#include "server/rpc/header_blocks.h"

#include <algorithm>
#include <utility>

namespace gridclock {
namespace {

constexpr std::uint8_t kData = 0, kHeaders = 1, kReset = 3, kContinuation = 9;  // Types of frames.
constexpr std::uint8_t kEndStream = 1, kEndHeaders = 4, kPriority = 0x20;       // Flags.
constexpr std::size_t kPriorityBytes = 5;

}  // namespace

absl::Span<std::uint8_t> HeaderBlocks::Take(std::size_t& left, absl::Span<std::uint8_t>& bytes) {
  const absl::Span<std::uint8_t> taken = bytes.first(std::min(left, bytes.size()));
  left -= taken.size();
  bytes.remove_prefix(taken.size());
  return taken;
}

bool HeaderBlocks::Feed(absl::Span<std::uint8_t> bytes) {
  while (!bytes.empty() && !failed()) {
    if (skip_ > 0) {
      Take(skip_, bytes);
    } else if (headers_ > 0) {
      fields_.Feed(Take(headers_, bytes));
    } else if (data_ > 0) {
      lengths_.Feed(Take(data_, bytes));
      if (data_ == 0) lengths_.EndFrame(ends_stream_);
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
  const std::uint32_t stream = (std::uint32_t{head_[5]} << 24 | std::uint32_t{head_[6]} << 16 |
                                std::uint32_t{head_[7]} << 8 | head_[8]) &
                               0x7fffffff;
  have_ = 0;
  skip_ = length;
  if (type == kData) return OnData(stream, flags, length);
  // Headers begin a stream, or end it: what came of it before them gRPC has skipped.
  if (type == kReset || type == kHeaders) lengths_.EndStream(stream);
  if (type != kHeaders && type != kContinuation) return;
  block_ += std::max(head_.size() + length, kLeastOfFrame);
  if (type == kHeaders) of_client_ = head_[8] % 2 == 1;
  const bool priority = type == kHeaders && (flags & kPriority) != 0;
  skip_ = priority ? std::min(kPriorityBytes, length) : 0;
  headers_ = length - skip_;
  ends_block_ = (flags & kEndHeaders) != 0;
}

// gRPC ends the stream of a frame with any other flag, and reads none of its bytes.
void HeaderBlocks::OnData(std::uint32_t stream, std::uint8_t flags, std::size_t length) {
  ends_stream_ = (flags & kEndStream) != 0;
  if (length == 0 || (flags & ~kEndStream) != 0) {
    if (flags != 0) lengths_.EndStream(stream);
    return;
  }
  lengths_.BeginFrame(stream);
  data_ = std::exchange(skip_, 0);
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
