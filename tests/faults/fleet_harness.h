// A server without its rpc: scheduler and fleet around a real worker that can break on purpose.
#ifndef GRIDCLOCK_TESTS_FAULTS_FLEET_HARNESS_H_
#define GRIDCLOCK_TESTS_FAULTS_FLEET_HARNESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "server/core/kernel_table.h"
#include "server/core/scheduler.h"
#include "server/fleet/fleet.h"
#include "tests/support/fake_worker.h"

namespace gridclock {

// Looks again and again until `done`; false after `limit`.
bool Eventually(const std::function<bool()>& done, absl::Duration limit = absl::Seconds(60));

// A call on its way; starts its job as soon as its inputs are in memory.
class RunningCall final : public JobListener {
 public:
  RunningCall(Scheduler& scheduler, const Arena& arena, std::vector<float> input)
      : scheduler_(scheduler), arena_(arena), input_(std::move(input)) {}
  void OnAccepted(const Job& job, const AcceptedInfo& info) override;
  void OnSamples(std::int64_t, std::span<const double>, bool) override {}
  void OnFinished(JobResult result) override;

  // Waits for the end.
  absl::Status Wait() const;
  bool finished() const;
  JobId id() const;
  // The first output, once it ended well.
  std::vector<float> output() const;

 private:
  Scheduler& scheduler_;
  const Arena& arena_;
  const std::vector<float> input_;
  mutable Mutex mutex_;
  std::shared_ptr<const ActiveJob> active_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> output_ ABSL_GUARDED_BY(mutex_);
  JobId id_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The time of a machine that can stand still, and everything on it.
class LeapingClock final : public Clock {
 public:
  absl::Time Now() const override { return clock_.Now() + absl::Nanoseconds(ahead_ns_.load()); }
  void Leap(absl::Duration by) { ahead_ns_ += absl::ToInt64Nanoseconds(by); }

 private:
  MonotonicClock clock_;
  std::atomic<std::int64_t> ahead_ns_{0};
};

class FleetHarness {
 public:
  struct Options {
    std::string worker = GRIDCLOCK_TEST_WORKER;
    std::string fault = "";  // GRIDCLOCK_FAULT.
    Supervisor::Options supervisor = {};
    absl::Duration silence_limit = absl::Milliseconds(3500);
    absl::Duration start_limit = absl::Seconds(60), longest_start = absl::Minutes(5);
    absl::Duration kill_limit = absl::Seconds(5);
    std::uint64_t guest_bytes = 0;
  };
  explicit FleetHarness(const Options& options);
  ~FleetHarness();

  // True once a worker was ready for the `times`-th time.
  bool WaitReady(int times = 1);
  WorkerState state() const;
  // The pid of the worker; 0 if there is none.
  pid_t WorkerPid() const;
  // False if there is no worker; no other process is ever meant.
  bool Signal(int signal) const;

  std::shared_ptr<RunningCall> Square(std::vector<float> x, bool in_place = false);
  std::shared_ptr<RunningCall> Spin(absl::Duration time);
  // Launches that spin, one after the other, are timed until the call is cancelled.
  std::shared_ptr<RunningCall> MeasuredSpins();
  std::shared_ptr<RunningCall> Fault(const std::string& kind,
                                     absl::Duration limit = absl::ZeroDuration());
  // An order of `empty` with attributes that it does not have, as admission would never make it.
  std::shared_ptr<RunningCall> EmptyWithAttributes(int count);
  // A square that must come back right.
  absl::Status CheckSquare();

  // To the server it is as if all had stood still for so long. The worker's own clock goes on as
  // before: it runs no call after this that the server would believe.
  void StandStill(absl::Duration time) { clock_.Leap(time); }

  DeviceInfo device_info() const { return table_.Devices()[0].info; }
  FakeObserver& observer() { return observer_; }
  Scheduler& scheduler() { return scheduler_; }
  ArenaAllocator& allocator() { return allocator_; }
  Fleet& fleet() { return *fleet_; }

 private:
  std::shared_ptr<RunningCall> Submit(JobRequest request, std::vector<float> input);

  LeapingClock clock_;
  FakeObserver observer_;
  Arena arena_;
  ArenaAllocator allocator_;
  Limits limits_;
  KernelTable table_;
  Scheduler scheduler_;
  std::unique_ptr<Fleet> fleet_;
};

// A fail point that spares the canary of every worker and strikes its first call: the worker rolls
// a generator for each report, and this finds a seed that rolls so.
std::string StrikesFirstCall(const std::string& point);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_FAULTS_FLEET_HARNESS_H_
