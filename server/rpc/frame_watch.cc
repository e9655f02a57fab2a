#include "server/rpc/frame_watch.h"

#include <algorithm>

namespace gridclock {
namespace {

// Types of frames.
constexpr std::uint8_t kHeaders = 1, kReset = 3, kSettings = 4, kPushPromise = 5, kContinuation = 9;
// Flags.
constexpr std::uint8_t kAck = 1, kEndHeaders = 4;

}  // namespace

bool Allowance::Take(Time now) {
  const MutexLock lock(mutex_);
  const double seconds = std::chrono::duration<double>(now - last_).count();
  if (last_ != Time()) left_ = std::min(most_, left_ + seconds * per_second_);
  last_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

FrameWatch::Fault FrameWatch::Feed(absl::Span<const std::uint8_t> bytes, Allowance::Time now) {
  while (!bytes.empty() && fault_ == Fault::kNone) {
    if (skip_ > 0) {
      const std::size_t skipped = std::min(skip_, bytes.size());
      skip_ -= skipped;
      bytes.remove_prefix(skipped);
      continue;
    }
    head_[have_++] = bytes.front();
    bytes.remove_prefix(1);
    if (have_ == head_.size()) OnFrame(now);
  }
  return fault_;
}

void FrameWatch::OnFrame(Allowance::Time now) {
  const std::size_t length = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
  const std::uint8_t type = head_[3], flags = head_[4];
  have_ = 0;
  skip_ = length;
  if (type == kSettings && (flags & kAck) != 0) {
    settled_ = true;
  } else if (type == kSettings || type == kReset) {
    if (!own_.Take(now) && !shared_.Take(now)) fault_ = Fault::kFlood;
  } else if (type == kHeaders || type == kPushPromise || type == kContinuation) {
    OnHeaders(type, flags, length);
  }
}

void FrameWatch::OnHeaders(std::uint8_t type, std::uint8_t flags, std::size_t length) {
  block_ += std::max(head_.size() + length, kLeastOfFrame);
  if (block_ > kMostBytes) {
    fault_ = Fault::kHeaders;
    return;
  }
  if ((flags & kEndHeaders) != 0) block_ = 0;
  if (type == kHeaders && !settled_ && ++unsettled_ > kMostUnsettled) fault_ = Fault::kFlood;
}

}  // namespace gridclock
