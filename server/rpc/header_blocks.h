// Bounds what one connection may send as the headers of one call, and says when it begins one;
// shows the bytes of its messages to MessageLengths. gRPC 1.51 keeps the frames of a header block
// (HEADERS, then CONTINUATION: RFC 9113, section 4.3) until the block ends and counts them only
// then, and parses again what is not whole with each frame (CVE-2023-33953). Nobody has shown a
// token by then.
#ifndef GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_
#define GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/types/span.h"
#include "server/rpc/header_fields.h"
#include "server/rpc/message_lengths.h"

namespace gridclock {

// One connection's bytes from its first on, as they come. Looks at the nine bytes before each
// frame, at the headers, and at what says how long messages are.
class HeaderBlocks {
 public:
  // Of a block, the nine bytes of each of its frames included. Far beyond the longest that a call
  // may have, so that a client with too many headers still hears so from gRPC.
  static constexpr std::size_t kMostBytes = 128 << 10;
  // The same of its fields: a call may have 256 by its bytes.
  static constexpr std::size_t kMostFields = 1024;
  // What a frame counts at least: peers fill frames of 16 KiB.
  static constexpr std::size_t kLeastOfFrame = 1 << 10;

  // Hears of each call that begins, with the fields of its headers, and of a call's trailers, which
  // take as much; false: there are too many.
  using Begun = std::function<bool(std::size_t fields)>;

  HeaderBlocks(Begun begun, MessageLengths lengths)
      : begun_(std::move(begun)), lengths_(std::move(lengths)) {}

  // False from the byte on that makes a block too long, or a call or a message too many, and for
  // ever after. Lengths of messages that are too long are changed.
  bool Feed(absl::Span<std::uint8_t> bytes);
  bool too_long() const { return block_ > kMostBytes || fields_.count() > kMostFields; }

 private:
  static constexpr std::size_t kPreface = 24;  // "PRI * HTTP/2.0...", before the first frame.

  bool failed() const { return refused_ || too_long() || lengths_.too_many(); }
  // Takes what there is of `left`, and returns it.
  static absl::Span<std::uint8_t> Take(std::size_t& left, absl::Span<std::uint8_t>& bytes);
  void OnFrame();
  void OnData(std::uint32_t stream, std::uint8_t flags, std::size_t length);
  void OnEndOfBlock();

  const Begun begun_;
  std::array<std::uint8_t, 9> head_{};
  std::size_t have_ = 0;         // Bytes of head_.
  std::size_t skip_ = kPreface;  // Bytes until the frame's headers, or until the next frame.
  std::size_t headers_ = 0;      // Bytes of headers that the frame still has, behind those.
  std::size_t data_ = 0;         // Bytes of messages that it still has.
  bool ends_block_ = false;      // The frame under way does, once its headers are there.
  bool ends_stream_ = false;     // The same of its data.
  std::size_t block_ = 0;        // Of the block that has begun and not ended.
  bool of_client_ = false;       // The block's stream is one that a client may begin.
  HeaderFields fields_;          // Of the block.
  MessageLengths lengths_;
  bool refused_ = false;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_
