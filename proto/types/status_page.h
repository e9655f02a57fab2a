// A page that a worker shares with the server: what it runs now. It outlives the worker, so the
// server knows which order was running when the worker died, and no frame has to say "started". The
// worker may write anything there: who reads it must be safe with any value.
#ifndef GRIDCLOCK_PROTO_TYPES_STATUS_PAGE_H_
#define GRIDCLOCK_PROTO_TYPES_STATUS_PAGE_H_

#include <atomic>
#include <cstdint>

namespace gridclock {

struct StatusPage {
  // The order that is running, or 0. Written by the worker: first since_ns, then running.
  std::atomic<std::uint64_t> running{0};
  std::atomic<std::int64_t> since_ns{0};  // CLOCK_MONOTONIC when it began.
  // The same for the launch, or the batch that is timed as one, under way; 0 between launches.
  std::atomic<std::int64_t> kernel_since_ns{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The descriptors that a worker finds open when it starts.
inline constexpr int kLinkFd = 3;    // SOCK_SEQPACKET to the server.
inline constexpr int kArenaFd = 4;   // The arena's memfd.
inline constexpr int kStatusFd = 5;  // A memfd of one StatusPage.
inline constexpr std::uint32_t kWorkerProtocol = 1;
inline constexpr std::uint64_t kFrameLimit = 64 * 1024;

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_STATUS_PAGE_H_
