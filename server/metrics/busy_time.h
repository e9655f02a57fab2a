// How long devices worked.
#ifndef GRIDCLOCK_SERVER_METRICS_BUSY_TIME_H_
#define GRIDCLOCK_SERVER_METRICS_BUSY_TIME_H_

#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.h"
#include "server/core/scheduler.h"
#include "server/metrics/instruments.h"
#include "server/metrics/registry.h"

namespace gridclock {

// Thread-safe. A job is counted when it ends, and until then by what is seen of it: one of ten
// minutes would else be nothing for as long, and then all at once.
class BusyTime {
 public:
  // Nanoseconds of the jobs that ended on a device. Look it up once.
  Tally& Of(const std::string& device) ABSL_LOCKS_EXCLUDED(mutex_);

  // What Of counted, by device. To be asked before the scheduler is: a job that ends in between is
  // then in neither, and not in both.
  std::map<std::string, std::int64_t> Ended() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Collect(const std::map<std::string, std::int64_t>& ended,
               const std::map<std::string, Scheduler::Usage>& now, ScrapeValues& values)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Device {
    Tally ended;
    std::int64_t shown = 0;  // A counter never falls.
  };

  mutable Mutex mutex_;
  std::map<std::string, Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_BUSY_TIME_H_
