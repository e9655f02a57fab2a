// When a worker that ended is started again. Pure: times are given, nothing is spawned here.
#ifndef GRIDCLOCK_SERVER_FLEET_SUPERVISOR_H_
#define GRIDCLOCK_SERVER_FLEET_SUPERVISOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <random>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gridclock {

// One per device; not thread-safe.
//
// An end that a job explains, or a kill from outside after the worker was ready, is answered by a
// new worker at once. Any other end waits: 100 ms, doubled each time. Too many of those, in a short
// time or without a worker that was ready between them, open the breaker, and so does one that
// hangs before it is ready: the device is quarantined, and a single worker is tried now and then.
// What the system lacks says nothing of a worker: it never opens the breaker, and the next is tried
// soon.
class Supervisor {
 public:
  struct Options {
    absl::Duration first_wait = absl::Milliseconds(100);
    absl::Duration longest_wait = absl::Seconds(30);
    double jitter = 0.2;                      // Waits vary by this part, up and down.
    absl::Duration calm = absl::Seconds(60);  // Ready for so long, the next wait is the first.
    int breaker_ends = 5;
    absl::Duration breaker_window = absl::Seconds(60);
    absl::Duration probe_every = absl::Seconds(30);
    absl::Duration starved_wait = absl::Seconds(1);
  };
  explicit Supervisor(const Options& options, std::uint64_t seed);

  void OnReady(absl::Time now);
  // Why a worker ended, as far as it matters here.
  enum class End {
    kJob,        // The job that ran explains it, or it was killed for that job's time.
    kOutside,    // Somebody else's signal.
    kItself,     // Anything else: it could not start, left, hung, broke the protocol.
    kHungStart,  // It hung before it was ready.
    kStarved,    // It could not be spawned for want of descriptors, memory or processes.
  };
  // Of a spawn that failed of `why`.
  static End EndOfSpawn(const absl::Status& why);
  // Returns when the next worker is to be spawned.
  absl::Time OnEnd(End end, absl::Time now);
  // The breaker is open.
  bool quarantined() const { return quarantined_; }

 private:
  absl::Duration NextWait();

  const Options options_;
  std::mt19937_64 random_;
  std::optional<absl::Time> ready_since_;
  absl::Duration wait_;
  std::deque<absl::Time> ends_;  // Those that count, within the window.
  int failed_starts_ = 0;        // Since one was ready.
  bool quarantined_ = false;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_SUPERVISOR_H_
