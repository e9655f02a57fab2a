#include "server/rpc/message_lengths.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr int kPrefix = 5;

}  // namespace

void MessageLengths::BeginFrame(std::uint32_t stream) {
  const auto found = begun_.find(stream);
  stream_ = stream;
  message_ = found == begun_.end() ? Message{} : found->second;
}

void MessageLengths::Feed(absl::Span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    if (message_.left > 0) {
      const auto taken = std::min<std::size_t>(message_.left, bytes.size());
      message_.left -= static_cast<std::uint32_t>(taken);
      bytes.remove_prefix(taken);
    } else {
      FeedPrefix(bytes.front());
      bytes.remove_prefix(1);
    }
  }
}

// From the first byte on that makes the length more than told_ its bytes are those of told_: what
// came before them, which gRPC may have, is the same of both.
void MessageLengths::FeedPrefix(std::uint8_t& byte) {
  if (message_.have > 0) {
    const auto told = static_cast<std::uint8_t>(told_ >> (8 * (kPrefix - 1 - message_.have)));
    if (message_.against == Against::kSame && byte != told) {
      message_.against = byte < told ? Against::kLess : Against::kMore;
    }
    if (message_.against == Against::kMore) byte = told;
    message_.length = message_.length << 8 | byte;
  }
  if (++message_.have == kPrefix) message_ = {.left = message_.length};
}

void MessageLengths::EndFrame(bool ends_stream) {
  if (ends_stream || (message_.have == 0 && message_.left == 0)) {
    begun_.erase(stream_);
  } else {
    begun_.insert_or_assign(stream_, message_);
  }
}

}  // namespace gridclock
