// Which failures are tried again, and when. Pure.
#ifndef GRIDCLOCK_CLIENT_CPP_RETRY_H_
#define GRIDCLOCK_CLIENT_CPP_RETRY_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gridclock {

struct RetryOptions {
  int max_attempts = 8;  // 1: never try again.
  // When no connection could be made, or it broke: the server says nothing of a good time.
  int max_attempts_unreachable = 3;
  // When the worker was lost that may have run the call: the next may be lost to it too.
  int max_attempts_lost = 3;
  absl::Duration first_backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  double multiplier = 2;
  // A server that wants a longer wait is not waited for: the failure is final and says how long.
  absl::Duration longest_wait = absl::Seconds(60);
  double jitter = 0.2;  // A wait is longer by up to this share.
};

// How long to wait before the next try, or nullopt: this failure is final. `attempts` counts those
// made so far; `left` is the time until the deadline; 0 <= `uniform` < 1 is chance.
// Tried again: UNAVAILABLE; RESOURCE_EXHAUSTED that carries RetryInfo; and, once a first try was
// lost, the answer that this very request is still running.
std::optional<absl::Duration> NextTry(const RetryOptions& options, const absl::Status& failure,
                                      int attempts, absl::Duration left, double uniform);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_RETRY_H_
