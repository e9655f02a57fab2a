// Counts what jobs and workers do, and keeps the runs of late.
#ifndef GRIDCLOCK_SERVER_METRICS_JOB_METRICS_H_
#define GRIDCLOCK_SERVER_METRICS_JOB_METRICS_H_

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "server/core/observer.h"
#include "server/metrics/busy_time.h"
#include "server/metrics/exposition.h"
#include "server/metrics/registry.h"
#include "server/metrics/run_log.h"
#include "server/metrics/series_cache.h"
#include "server/metrics/words.h"

namespace gridclock {

// Thread-safe. Once a kernel has run on a device a job takes one lock, that of the log of runs.
class JobMetrics final : public JobObserver {
 public:
  // Borrows `registry`.
  explicit JobMetrics(Registry& registry);

  // Until this is set no kernel is known.
  void SetKnowsKernel(std::function<bool(absl::string_view)> knows_kernel)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void OnRejected(absl::string_view device, const absl::Status& status) override;
  void OnFinished(const Job& job, const JobResult& result) override;
  void OnWorkerUp(absl::string_view device) override;
  void OnWorkerLost(absl::string_view device, absl::string_view reason) override;
  void OnStrayAnswer(absl::string_view device) override;
  void OnGuestLost(absl::string_view device, absl::string_view reason) override;

  // What changes while jobs run: `now` as Sources::queue_usage, asked after Ended().
  std::map<std::string, std::int64_t> Ended() const { return busy_.Ended(); }
  void Collect(const std::map<std::string, std::int64_t>& ended,
               const std::map<std::string, Scheduler::Usage>& now, ScrapeValues& values) {
    busy_.Collect(ended, now, values);
  }

  Activity Read(absl::Time now, std::size_t most_runs = RunLog::kRuns) const {
    return runs_.Read(now, most_runs);
  }
  std::map<std::string, DeviceReading> readings() const { return runs_.readings(); }
  std::optional<RunRecord> Find(JobId id) const { return runs_.Find(id); }
  // As ExemplarFinder, of the times of launches. What it names can still be read much later.
  std::optional<Exemplar> ExemplarOf(JobId id, double above, double upto) const;

 private:
  // Of a device.
  struct MeasurementSeries {
    Tally* all = nullptr;
    Tally* doubtful = nullptr;
    std::array<Tally*, kFlagCount> flags{};
  };
  // All that a job may touch, resolved once.
  struct JobSeries {
    RunLog::Trail* trail = nullptr;
    Histogram* duration = nullptr;
    Tally* ok = nullptr;
    Tally* wrong = nullptr;         // Null of what is not of the catalogue.
    Tally* variant_jobs = nullptr;  // Null of submitted code, which has no variants.
    Histogram* queue_wait = nullptr;
    Tally* busy_ns = nullptr;
    Tally* bytes_in = nullptr;
    Tally* bytes_out = nullptr;
    Histogram* copy_in = nullptr;
    Histogram* copy_out = nullptr;
    std::array<Histogram*, kPhaseCount> phases{};  // Of the device, in the order of PhaseKind.
    Tally* kernel_bytes = nullptr;  // Null of submitted code, as the next: its client's words.
    Tally* roofline_ns = nullptr;
    MeasurementSeries measurements;
  };
  // `made`: room for one that the cache does not hold.
  const JobSeries& SeriesOf(const Job& job, std::optional<JobSeries>& made)
      ABSL_LOCKS_EXCLUDED(mutex_);
  JobSeries Resolve(const SeriesKey& key, bool submitted);
  MeasurementSeries MeasurementsOn(const std::string& device);
  bool Knows(absl::string_view kernel) const ABSL_LOCKS_EXCLUDED(mutex_);
  void CountOutcome(const JobSeries& series, absl::string_view outcome);
  static void CountWrong(const Job& job, const Outcome& outcome, const JobSeries& series);
  static void CountPhases(const Outcome& outcome, const JobSeries& series);
  static void CountMeasurement(const Outcome& outcome, const MeasurementSeries& series);
  static void CountLaunches(const Job& job, const Timing& timing, const JobSeries& series);

  Registry& registry_;
  RunLog runs_;
  BusyTime busy_;
  SeriesCache<JobSeries> series_;
  mutable Mutex mutex_;
  std::function<bool(absl::string_view)> knows_kernel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_JOB_METRICS_H_
