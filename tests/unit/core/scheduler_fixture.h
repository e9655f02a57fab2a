// A scheduler of one device with a clock that stands still, and calls of it.
#ifndef GRIDCLOCK_TESTS_UNIT_CORE_SCHEDULER_FIXTURE_H_
#define GRIDCLOCK_TESTS_UNIT_CORE_SCHEDULER_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/core/scheduler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

class SchedulerFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kPage = ArenaAllocator::kPage;

  struct Call {
    JobId id = 0;
    std::shared_ptr<FakeListener> listener = std::make_shared<FakeListener>();
  };

  SchedulerFixture(std::string device, const Limits& limits, std::uint64_t arena_bytes,
                   std::uint64_t client_arena_bytes)
      : device_(std::move(device)),
        arena_(arena_bytes, client_arena_bytes),
        scheduler_(clock_, limits, arena_, observer_) {}

  Job MakeJob(const std::string& principal = "ann", std::uint64_t bytes = kPage) const {
    Job job;
    job.kernel = "square";
    job.device = device_;
    job.principal = principal;
    job.memory.size = bytes;
    job.arrived = clock_.Now();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(30);
    return job;
  }
  Call Submit(Job job, bool wait_for_memory = false) {
    Call call;
    auto id = scheduler_.Submit(std::move(job), call.listener, wait_for_memory);
    EXPECT_THAT(id, IsOk());
    call.id = id.ok() ? *id : 0;
    return call;
  }
  // With its inputs.
  Call SubmitReady(Job job) {
    Call call = Submit(std::move(job));
    scheduler_.Start(call.id);
    return call;
  }
  std::shared_ptr<FakeWorker> Ready(std::uint64_t generation = 1,
                                    WorkerRole role = WorkerRole::kTrusted) {
    auto worker = std::make_shared<FakeWorker>(role);
    scheduler_.OnWorkerReady(device_, worker, generation);
    return worker;
  }
  bool Done(JobId id, std::uint64_t generation = 1) {
    return scheduler_.OnDone(id, generation, {.status = absl::OkStatus(), .outcome = Outcome{}});
  }

  const std::string device_;
  FakeClock clock_;
  FakeObserver observer_;
  ArenaAllocator arena_;
  Scheduler scheduler_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CORE_SCHEDULER_FIXTURE_H_
