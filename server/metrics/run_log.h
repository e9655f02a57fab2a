// The runs of late, kept in memory for people and for exemplars.
#ifndef GRIDCLOCK_SERVER_METRICS_RUN_LOG_H_
#define GRIDCLOCK_SERVER_METRICS_RUN_LOG_H_

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/core/activity.h"
#include "server/core/observer.h"
#include "server/metrics/latency_window.h"

namespace gridclock {

// Thread-safe. A run costs one short lock and, once the log is full, hardly an allocation: records
// are overwritten in place.
class RunLog {
 public:
  static constexpr std::size_t kRuns = 200;
  // About 1 kB each. A scrape names at most as many new ones as there are buckets: an hour of
  // scrapes every 15 s has room for forty of each.
  static constexpr std::size_t kHandedOut = 10'000;

  // What is kept of one kernel on one device. Belongs to the log, lives as long, and is changed by
  // it alone.
  struct Trail {
    Trail(const std::string& kernel, const std::string& device, const Histogram* launches)
        : kernel(kernel), device(device), launches(launches) {}
    const std::string kernel, device;
    LatencyWindow launches;
    std::uint64_t runs = 0, failed = 0;
    std::array<LatencySlot, kLatencySlots> slots;
    std::int64_t last_slot = 0;  // Number, since the epoch, of the newest stretch in `slots`.
  };
  // The same for the same names. Look it up once. `launches` is the histogram of their times, read
  // for quantiles; null if it is not theirs alone.
  Trail& TrailOf(const std::string& kernel, const std::string& device,
                 const Histogram* launches = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);

  // Call before its launches are observed. `outcome` is a word that lives for ever.
  void Add(Trail& trail, const Job& job, const JobResult& result, absl::string_view outcome,
           absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the last kRuns, or of the last kHandedOut that were kept.
  std::optional<RunRecord> Find(JobId id) const ABSL_LOCKS_EXCLUDED(mutex_, handed_out_mutex_);
  // A scrape names it: who follows the link some time later shall find it. As Find gave it.
  void Keep(RunRecord run) const ABSL_LOCKS_EXCLUDED(handed_out_mutex_);
  // With the newest `most_runs`: what ends meanwhile waits for their copies.
  Activity Read(absl::Time now, std::size_t most_runs = kRuns) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Of each device that measured, the last; by its own worker: a guest may say anything.
  std::map<std::string, DeviceReading> readings() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Names are the trail's, and are put into the record when it is read.
  struct Kept {
    const Trail* trail = nullptr;
    RunRecord run;
  };
  static RunRecord Named(const Kept& kept);
  // All but latencies of launches; `trails` as the kernels.
  Activity ReadKept(absl::Time now, std::size_t most_runs, std::vector<const Trail*>* trails) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A record to fill, in the place of the oldest.
  Kept& PlaceFor(JobId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Kept* NewestOf(JobId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillLatencies(const Trail& trail, absl::Time now, KernelActivity* kernel) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::vector<Kept> ring_ ABSL_GUARDED_BY(mutex_);
  std::size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // Where the next one goes once the ring is full.
  // Of the ring, side by side: a scrape asks for a run of each bucket, most of them long forgotten,
  // and a table of them would cost each run more than a scrape saves.
  std::array<JobId, kRuns> ids_ ABSL_GUARDED_BY(mutex_) = {};
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Trail>> trails_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, DeviceReading> readings_ ABSL_GUARDED_BY(mutex_);
  // Of its own, so that no run waits while a scrape looks for those that it named before.
  mutable Mutex handed_out_mutex_;
  mutable std::map<JobId, RunRecord> handed_out_ ABSL_GUARDED_BY(handed_out_mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_RUN_LOG_H_
