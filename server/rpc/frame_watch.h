// Bounds what one connection may ask of gRPC 1.51 in frames, before anybody has shown a token:
// - gRPC keeps the frames of a header block (HEADERS, then CONTINUATION: RFC 9113, section 4.3)
//   until the block ends and counts them only then, and parses again what is not whole with each
//   frame (CVE-2023-33953);
// - it holds a client to the most calls at once only when that client has acknowledged its
// SETTINGS;
// - a call that is begun and reset no longer counts, though what it took is there for a while, and
//   each SETTINGS wants an answer (CVE-2023-44487).
#ifndef GRIDCLOCK_SERVER_RPC_FRAME_WATCH_H_
#define GRIDCLOCK_SERVER_RPC_FRAME_WATCH_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "base/mutex.h"

namespace gridclock {

// So many at once, and so many again each second. Thread-safe.
class Allowance {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Allowance(double at_first, double most, double per_second)
      : most_(most), per_second_(per_second), left_(at_first) {}

  // Takes one, or says that none is left.
  bool Take(Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const double most_, per_second_;
  Mutex mutex_;
  double left_ ABSL_GUARDED_BY(mutex_);
  Time last_ ABSL_GUARDED_BY(mutex_);
};

// One connection's bytes from its first on, as they come. Looks at the nine bytes before each frame
// and skips what is in it.
class FrameWatch {
 public:
  // Of a block, the nine bytes of each of its frames included. Far beyond the longest that a call
  // may have, so that a client with too many headers still hears so from gRPC.
  static constexpr std::size_t kMostBytes = 128 << 10;
  // What a frame counts at least: peers fill frames of 16 KiB.
  static constexpr std::size_t kLeastOfFrame = 1 << 10;
  // Calls before it has acknowledged the server's SETTINGS, the first frame that it gets.
  static constexpr int kMostUnsettled = 128;
  // RST_STREAM and SETTINGS, beyond which it takes of what all connections share: few where many
  // connections are opened to have many.
  static constexpr double kOwnAtFirst = 16, kOwnMost = 128, kOwnPerSecond = 16;
  static constexpr double kSharedMost = 4096, kSharedPerSecond = 2048;

  enum class Fault : std::uint8_t { kNone, kHeaders, kFlood };

  explicit FrameWatch(Allowance& shared) : shared_(shared) {}

  // What is wrong, from the byte on that makes it so, and for ever after.
  Fault Feed(absl::Span<const std::uint8_t> bytes, Allowance::Time now);
  Fault fault() const { return fault_; }

 private:
  static constexpr std::size_t kPreface = 24;  // "PRI * HTTP/2.0...", before the first frame.

  void OnFrame(Allowance::Time now);
  void OnHeaders(std::uint8_t type, std::uint8_t flags, std::size_t length);

  Allowance& shared_;
  Allowance own_{kOwnAtFirst, kOwnMost, kOwnPerSecond};
  std::array<std::uint8_t, 9> head_{};
  std::size_t have_ = 0;         // Bytes of head_.
  std::size_t skip_ = kPreface;  // Bytes until the next frame.
  std::size_t block_ = 0;        // Of the block that has begun and not ended.
  int unsettled_ = 0;            // Calls; once it is settled they count no more.
  bool settled_ = false;
  Fault fault_ = Fault::kNone;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_FRAME_WATCH_H_
