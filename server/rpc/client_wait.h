#ifndef GRIDCLOCK_SERVER_RPC_CLIENT_WAIT_H_
#define GRIDCLOCK_SERVER_RPC_CLIENT_WAIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/core/limits.h"

namespace gridclock {

// How long a call may wait for its client: stream_stall_seconds for one message; and for all
// together as long again, and the time that its bytes take at stream_bytes_per_second. Else a byte
// now and then would keep a place in the queue, and memory, for ever.
class ClientWait {
 public:
  ClientWait(const Limits& limits, absl::Time now)
      : stall_(absl::Seconds(limits.stream_stall_seconds)),
        rate_(limits.stream_bytes_per_second),
        counted_(now),
        moved_(now) {}

  // From now on it waits for its client, or for something else.
  void Set(bool waits, absl::Time now) {
    Count(now);
    if (waits && !waits_) moved_ = now;
    waits_ = waits;
  }
  // A message came or went.
  void Moved(std::uint64_t bytes, absl::Time now) {
    Count(now);
    bytes_ += bytes;
    moved_ = now;
  }

  bool TooLong(absl::Time now) {
    Count(now);
    return waits_ && (now - moved_ >= stall_ || waited_ >= Allowed());
  }
  // DEADLINE_EXCEEDED (STREAM_STALLED). `act`: what the client should have done.
  absl::Status Why(absl::string_view act) const;

 private:
  absl::Duration Allowed() const {
    return stall_ + absl::Seconds(static_cast<double>(bytes_) / rate_);
  }
  void Count(absl::Time now) {
    if (waits_) waited_ += now - counted_;
    counted_ = now;
  }

  const absl::Duration stall_;
  const double rate_;
  bool waits_ = false;
  std::uint64_t bytes_ = 0;
  absl::Duration waited_;  // So far, up to counted_.
  absl::Time counted_, moved_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_CLIENT_WAIT_H_
