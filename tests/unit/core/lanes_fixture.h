// A scheduler whose one device takes submitted code.
#ifndef GRIDCLOCK_TESTS_UNIT_CORE_LANES_FIXTURE_H_
#define GRIDCLOCK_TESTS_UNIT_CORE_LANES_FIXTURE_H_

#include <memory>
#include <string>

#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {

inline constexpr char kLane[] = "cpu/guest";

inline Limits ManyCalls() {
  Limits limits;
  limits.queue = limits.client_queue = 10000;
  return limits;
}

class SchedulerLanesTest : public SchedulerFixture {
 protected:
  explicit SchedulerLanesTest(const Limits& limits = ManyCalls())
      : SchedulerFixture("cpu", limits, 1 << 30, 1 << 30) {
    scheduler_.AddGuests("cpu", guests_);
  }

  Job Submitted(const std::string& principal = "ann") const {
    Job job = MakeJob(principal);
    job.kernel = "mine";
    job.program = std::make_shared<const JobProgram>();
    return job;
  }
  static Job Large(Job job) {
    job.memory.size = 2 * Scheduler::kSmallBytes;
    return job;
  }
  static Job Measured(Job job) {
    job.measure = MeasureOptions();
    return job;
  }
  std::shared_ptr<FakeWorker> GuestReady(std::uint64_t generation = 100) {
    auto guest = std::make_shared<FakeWorker>(WorkerRole::kGuest);
    scheduler_.OnWorkerReady(kLane, guest, generation);
    return guest;
  }
  bool GuestDone(JobId id, std::uint64_t generation = 100) { return Done(id, generation); }
  void LoseGuest(const WorkerLoss& loss, std::uint64_t generation = 100) {
    scheduler_.OnWorkerLost(kLane, generation, loss);
  }
  static WorkerLoss Retired() {
    return {.reason = "retired", .detail = "killed: retired", .planned = true};
  }

  FakeGuests guests_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CORE_LANES_FIXTURE_H_
