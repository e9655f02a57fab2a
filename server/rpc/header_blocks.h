// Bounds what one connection may send as the headers of one call. gRPC 1.51 keeps the frames of a
// header block (HEADERS, then CONTINUATION: RFC 9113, section 4.3) until the block ends and counts
// them only then, and parses again what is not whole with each frame (CVE-2023-33953). Nobody has
// shown a token by then.
#ifndef GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_
#define GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace gridclock {

// One connection's bytes from its first on, as they come. Looks at the nine bytes before each frame
// and skips what is in it.
class HeaderBlocks {
 public:
  // Of a block, the nine bytes of each of its frames included. Far beyond the longest that a call
  // may have, so that a client with too many headers still hears so from gRPC.
  static constexpr std::size_t kMostBytes = 128 << 10;
  // What a frame counts at least: peers fill frames of 16 KiB.
  static constexpr std::size_t kLeastOfFrame = 1 << 10;

  // False from the byte on that makes a block too long, and for ever after.
  bool Feed(absl::Span<const std::uint8_t> bytes);
  bool too_long() const { return block_ > kMostBytes; }

 private:
  static constexpr std::size_t kPreface = 24;  // "PRI * HTTP/2.0...", before the first frame.

  void OnFrame();

  std::array<std::uint8_t, 9> head_{};
  std::size_t have_ = 0;         // Bytes of head_.
  std::size_t skip_ = kPreface;  // Bytes until the next frame.
  std::size_t block_ = 0;        // Of the block that has begun and not ended.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEADER_BLOCKS_H_
