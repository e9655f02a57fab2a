// What a histogram counted of late.
#ifndef GRIDCLOCK_SERVER_METRICS_LATENCY_WINDOW_H_
#define GRIDCLOCK_SERVER_METRICS_LATENCY_WINDOW_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "server/metrics/instruments.h"

namespace gridclock {

// Thread-safe. Remembers what the histogram held at the start of each stretch of ten seconds in
// which it was touched; a stretch in which nobody touched it changed nothing.
class LatencyWindow {
 public:
  static constexpr int kStretches = 12;
  static constexpr std::int64_t kStretchSeconds = 10;

  // Borrows `histogram`; null where there is none of its own: nothing is known.
  explicit LatencyWindow(const Histogram* histogram) : histogram_(histogram) {}

  // Call before what ended at `now` is observed: one load, but for the first in each stretch.
  void Touch(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Since when Read counts, in seconds since the epoch.
  static std::int64_t StartOf(absl::Time now);

  // Native buckets of the last two minutes, up to ten seconds less; empty if nothing came.
  std::vector<std::uint64_t> Read(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  struct Start {
    std::int64_t stretch = kNever;  // Number since the epoch.
    std::vector<std::uint64_t> native;
  };
  // Of the stretches from `first` on the oldest that is remembered; null if there is none.
  const Start* OldestFrom(std::int64_t first) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Histogram* const histogram_;
  std::atomic<std::int64_t> newest_{kNever};
  mutable Mutex mutex_;
  std::array<Start, kStretches> starts_ ABSL_GUARDED_BY(mutex_);  // By number, as a ring.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_LATENCY_WINDOW_H_
