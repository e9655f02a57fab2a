// A worker, a listener and an observer that remember what they were told and do nothing by
// themselves.
#ifndef GRIDCLOCK_TESTS_SUPPORT_FAKE_WORKER_H_
#define GRIDCLOCK_TESTS_SUPPORT_FAKE_WORKER_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/core/observer.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Thread-safe, as a real one.
class FakeWorker final : public WorkerPort {
 public:
  explicit FakeWorker(WorkerRole role = WorkerRole::kTrusted) : role_(role) {}

  WorkerRole role() const override { return role_; }
  bool Send(const Job& job, std::uint64_t) override {
    MutexLock lock(mutex_);
    orders_.push_back(job.id);
    ++sends_;
    return true;
  }
  bool SendAll(std::span<const Job* const> jobs, std::uint64_t) override {
    MutexLock lock(mutex_);
    for (const Job* job : jobs) orders_.push_back(job->id);
    ++sends_;
    return true;
  }
  void Await(JobId id) override {
    MutexLock lock(mutex_);
    awaited_.push_back(id);
  }
  void Cancel(JobId id) override {
    MutexLock lock(mutex_);
    cancels_.push_back(id);
  }
  void Yield(JobId id) override {
    MutexLock lock(mutex_);
    yields_.push_back(id);
  }
  void Arrived(const Job& job, std::uint64_t, const InputArrival& arrival) override {
    std::function<void()> meanwhile;
    {
      MutexLock lock(mutex_);
      arrivals_.push_back({job.id, arrival.bytes});
      meanwhile = std::exchange(meanwhile_, nullptr);
    }
    if (meanwhile) meanwhile();
  }
  void Kill(absl::string_view reason) override {
    MutexLock lock(mutex_);
    kills_.emplace_back(reason);
  }
  Running running() const override {
    MutexLock lock(mutex_);
    return running_;
  }

  bool worn() const override { return worn_; }
  void WearOut() { worn_ = true; }
  // What happens while it hears of the next input that arrives.
  void AtNextArrival(std::function<void()> meanwhile) {
    MutexLock lock(mutex_);
    meanwhile_ = std::move(meanwhile);
  }
  void Run(JobId id, absl::Time since, absl::Time launched = absl::InfiniteFuture()) {
    MutexLock lock(mutex_);
    running_ = {.id = id, .since = since, .launched = launched};
  }
  std::vector<JobId> orders() const {
    MutexLock lock(mutex_);
    return orders_;
  }
  // How often it was spoken to with orders.
  std::size_t sends() const {
    MutexLock lock(mutex_);
    return sends_;
  }
  std::vector<JobId> awaited() const {
    MutexLock lock(mutex_);
    return awaited_;
  }
  std::vector<JobId> yields() const {
    MutexLock lock(mutex_);
    return yields_;
  }
  std::vector<JobId> cancels() const {
    MutexLock lock(mutex_);
    return cancels_;
  }
  // Job and bytes, of each time that it heard of an input.
  std::vector<std::pair<JobId, std::uint64_t>> arrivals() const {
    MutexLock lock(mutex_);
    return arrivals_;
  }
  std::vector<std::string> kills() const {
    MutexLock lock(mutex_);
    return kills_;
  }

 private:
  const WorkerRole role_;
  mutable Mutex mutex_;
  Running running_ ABSL_GUARDED_BY(mutex_);
  std::vector<JobId> orders_ ABSL_GUARDED_BY(mutex_), cancels_ ABSL_GUARDED_BY(mutex_),
      yields_ ABSL_GUARDED_BY(mutex_);
  std::vector<JobId> awaited_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<JobId, std::uint64_t>> arrivals_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> meanwhile_ ABSL_GUARDED_BY(mutex_);
  std::size_t sends_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> worn_ = false;
  std::vector<std::string> kills_ ABSL_GUARDED_BY(mutex_);
};

// Who starts guests when told to, and does not.
class FakeGuests final : public GuestPort {
 public:
  void Start() override {
    MutexLock lock(mutex_);
    ++starts_;
  }
  void Blame(const Job& job, absl::string_view /*why*/) override {
    MutexLock lock(mutex_);
    blamed_.push_back(job.id);
    blamed_kernels_.push_back(job.kernel);
  }
  int starts() const {
    MutexLock lock(mutex_);
    return starts_;
  }
  std::vector<JobId> blamed() const {
    MutexLock lock(mutex_);
    return blamed_;
  }
  std::vector<std::string> blamed_kernels() const {
    MutexLock lock(mutex_);
    return blamed_kernels_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> blamed_kernels_ ABSL_GUARDED_BY(mutex_);
  int starts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<JobId> blamed_ ABSL_GUARDED_BY(mutex_);
};

class FakeListener final : public JobListener {
 public:
  void OnAccepted(const Job& job, const AcceptedInfo& info) override {
    MutexLock lock(mutex_);
    if (end_) out_of_order_ = true;
    accepted_ = job;
    info_ = info;
  }
  void OnSamples(std::int64_t, std::span<const double> samples, bool) override {
    MutexLock lock(mutex_);
    if (end_ || !accepted_) out_of_order_ = true;
    samples_.insert(samples_.end(), samples.begin(), samples.end());
  }
  void OnFinished(JobResult result) override {
    MutexLock lock(mutex_);
    ++ends_;
    end_ = std::move(result);
  }

  std::optional<Job> accepted() const {
    MutexLock lock(mutex_);
    return accepted_;
  }
  AcceptedInfo info() const {
    MutexLock lock(mutex_);
    return info_;
  }
  std::vector<double> samples() const {
    MutexLock lock(mutex_);
    return samples_;
  }
  // How it ended, if it did.
  std::optional<JobResult> end() const {
    MutexLock lock(mutex_);
    return end_;
  }
  // The status at the end; UNKNOWN if there was none yet.
  absl::Status status() const {
    MutexLock lock(mutex_);
    return end_ ? end_->status : absl::UnknownError("not finished");
  }
  int ends() const {
    MutexLock lock(mutex_);
    return ends_;
  }
  bool out_of_order() const {
    MutexLock lock(mutex_);
    return out_of_order_;
  }

 private:
  mutable Mutex mutex_;
  std::optional<Job> accepted_ ABSL_GUARDED_BY(mutex_);
  AcceptedInfo info_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> samples_ ABSL_GUARDED_BY(mutex_);
  std::optional<JobResult> end_ ABSL_GUARDED_BY(mutex_);
  int ends_ ABSL_GUARDED_BY(mutex_) = 0;
  bool out_of_order_ ABSL_GUARDED_BY(mutex_) = false;
};

class FakeObserver final : public JobObserver {
 public:
  void OnRejected(absl::string_view, const absl::Status&) override { Count("rejected"); }
  void OnFinished(const Job&, const JobResult&) override { Count("finished"); }
  void OnWorkerUp(absl::string_view) override { Count("up"); }
  void OnWorkerLost(absl::string_view, absl::string_view reason) override {
    Count("lost");
    Count("lost " + std::string(reason));
  }
  void OnGuestLost(absl::string_view, absl::string_view reason) override {
    Count("guest lost " + std::string(reason));
  }
  void OnStrayAnswer(absl::string_view) override { Count("stray answer"); }
  int count(const std::string& event) const {
    MutexLock lock(mutex_);
    const auto found = counts_.find(event);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  void Count(const std::string& event) {
    MutexLock lock(mutex_);
    ++counts_[event];
  }
  mutable Mutex mutex_;
  std::map<std::string, int> counts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_FAKE_WORKER_H_
