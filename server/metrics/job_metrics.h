// Counts what jobs and workers do.
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
#include "server/metrics/registry.h"
#include "server/metrics/series_cache.h"

namespace gridclock {

// Thread-safe; takes no lock once a kernel has run on a device.
class JobMetrics final : public JobObserver {
 public:
  // Borrows `registry`.
  explicit JobMetrics(Registry& registry);

  // Until this is set no kernel is known.
  void SetKnowsKernel(std::function<bool(absl::string_view)> knows_kernel)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void OnRejected(absl::string_view device, const absl::Status& status) override;
  void OnDispatched(const Job& job, absl::Duration waited) override;
  void OnFinished(const Job& job, const JobResult& result) override;
  void OnWorkerUp(absl::string_view device) override;
  void OnWorkerLost(absl::string_view device, absl::string_view reason) override;

 private:
  // All that a job may touch, resolved once.
  struct PairSeries {
    Histogram* duration = nullptr;
    Tally* ok = nullptr;
    Histogram* queue_wait = nullptr;
    Tally* busy_ns = nullptr;
    Tally* bytes_in = nullptr;
    Tally* bytes_out = nullptr;
  };
  PairSeries SeriesOf(const Job& job) ABSL_LOCKS_EXCLUDED(mutex_);
  PairSeries Resolve(const std::string& kernel, const std::string& device);
  bool Knows(absl::string_view kernel) const ABSL_LOCKS_EXCLUDED(mutex_);
  void CountOutcome(const Job& job, const JobResult& result, const PairSeries& series);
  void CountMeasurement(const Job& job, const Outcome& outcome, const PairSeries& series);

  Registry& registry_;
  Tally& measurements_;
  std::array<Tally*, kFlagCount> flags_{};
  SeriesCache<PairSeries> pairs_;
  mutable Mutex mutex_;
  std::function<bool(absl::string_view)> knows_kernel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_JOB_METRICS_H_
