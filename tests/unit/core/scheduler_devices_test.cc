// Eight devices: what happens to one is not seen on another.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/core/scheduler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

constexpr int kDevices = 8;
constexpr std::uint64_t kGeneration = 1;

std::string NameOf(int device) {
  return absl::StrCat("cuda:", device);
}

class SchedulerDevicesTest : public ::testing::Test {
 protected:
  struct Call {
    JobId id = 0;
    std::shared_ptr<FakeListener> listener = std::make_shared<FakeListener>();
  };

  // A worker on each device; it runs the first of two calls, the second waits there.
  SchedulerDevicesTest() {
    for (int i = 0; i < kDevices; ++i) {
      workers_.push_back(std::make_shared<FakeWorker>());
      scheduler_.OnWorkerReady(NameOf(i), workers_[i], kGeneration);
      running_.push_back(Submit(i));
      waiting_.push_back(Submit(i));
      workers_[i]->Run(running_[i].id, clock_.Now(), clock_.Now());
    }
  }
  Call Submit(int device) {
    Job job;
    job.kernel = "square";
    job.device = NameOf(device);
    job.principal = "ann";
    job.memory.size = 4096;
    job.arrived = clock_.Now();
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(device == 2 ? 1 : 30);
    job.host_memory = false;
    Call call;
    auto id = scheduler_.Submit(std::move(job), call.listener, false);
    EXPECT_THAT(id, IsOk());
    call.id = *id;
    scheduler_.Start(call.id);
    return call;
  }
  void Finish(int device, JobId id) {
    Outcome outcome;
    outcome.variant = "naive";
    EXPECT_TRUE(scheduler_.OnDone(id, kGeneration,
                                  {.status = absl::OkStatus(), .outcome = std::move(outcome)}))
        << device;
  }
  // Whatever became of `but`: the calls of all other devices are as they were, and end well.
  void ExpectOthersUnharmed(int but) {
    for (int i = 0; i < kDevices; ++i) {
      if (i == but) continue;
      EXPECT_THAT(workers_[i]->kills(), IsEmpty()) << i;
      EXPECT_THAT(workers_[i]->cancels(), IsEmpty()) << i;
      EXPECT_THAT(workers_[i]->orders(), SizeIs(2)) << i;
      EXPECT_EQ(running_[i].listener->ends() + waiting_[i].listener->ends(), 0) << i;
      Finish(i, running_[i].id);
      Finish(i, waiting_[i].id);
      EXPECT_THAT(running_[i].listener->status(), IsOk()) << i;
      EXPECT_THAT(waiting_[i].listener->status(), IsOk()) << i;
    }
  }

  FakeClock clock_;
  FakeObserver observer_;
  Limits limits_;
  ArenaAllocator arena_{64 * 4096, 64 * 4096};
  Scheduler scheduler_{clock_, limits_, arena_, observer_};
  std::vector<std::shared_ptr<FakeWorker>> workers_;
  std::vector<Call> running_, waiting_;
};

TEST_F(SchedulerDevicesTest, AFaultOfAKernelCostsItsOwnCallAlone) {
  const absl::Status fault =
      WithReason(absl::FailedPreconditionError("kernel 'fault/naive': 700"), "KERNEL_FAULT");
  ASSERT_TRUE(
      scheduler_.OnDone(running_[3].id, kGeneration, {.status = fault, .outcome = std::nullopt}));
  scheduler_.OnWorkerLost(NameOf(3), kGeneration,
                          {.reason = "exit", .running = running_[3].id, .detail = "exit code 1"});

  EXPECT_THAT(running_[3].listener->status(), ReasonIs("KERNEL_FAULT"));
  EXPECT_EQ(waiting_[3].listener->ends(), 0);  // It runs on the next worker.
  const auto next = std::make_shared<FakeWorker>();
  scheduler_.OnWorkerReady(NameOf(3), next, kGeneration + 1);
  EXPECT_EQ(next->orders(), std::vector<JobId>{waiting_[3].id});
  ExpectOthersUnharmed(3);
}

// Of a second for launches and one more for what comes before and after them.
TEST_F(SchedulerDevicesTest, WhichLimitEndedACallDoesNotHangOnTheTick) {
  for (const auto& [before, reason] :
       {std::pair{1100, "KERNEL_TIME_LIMIT"}, std::pair{1900, "WORK_TIME_LIMIT"}}) {
    const Call call = running_[2];
    const absl::Time start = clock_.Now();
    workers_[2]->Run(call.id, start, start + absl::Milliseconds(before));
    clock_.Advance(absl::Milliseconds(2300));
    scheduler_.Tick();
    scheduler_.OnWorkerLost(NameOf(2), kGeneration,
                            {.reason = "time_limit", .running = call.id, .detail = "killed"});
    EXPECT_THAT(call.listener->status(), ReasonIs(reason));
    workers_[2] = std::make_shared<FakeWorker>();
    scheduler_.OnWorkerReady(NameOf(2), workers_[2], kGeneration);
    running_[2] = std::exchange(waiting_[2], Submit(2));
  }
}

TEST_F(SchedulerDevicesTest, AKernelThatNeverEndsIsKilledWithItsWorkerAlone) {
  clock_.Advance(absl::Seconds(2));
  scheduler_.Tick();

  EXPECT_EQ(workers_[2]->kills(), std::vector<std::string>{"time_limit"});
  scheduler_.OnWorkerLost(NameOf(2), kGeneration,
                          {.reason = "time_limit", .running = running_[2].id, .detail = "killed"});
  EXPECT_THAT(running_[2].listener->status(), StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_THAT(running_[2].listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
  ExpectOthersUnharmed(2);
}

TEST_F(SchedulerDevicesTest, G9_AQuarantinedDeviceRefusesItsOwnCallsAlone) {
  scheduler_.OnWorkerLost(NameOf(5), kGeneration, {.reason = "exit", .detail = "exit code 1"});
  scheduler_.OnDeviceDown(NameOf(5), absl::UnavailableError("ends again and again"));

  for (const Call& call : {running_[5], waiting_[5]}) {
    EXPECT_THAT(call.listener->status(), StatusIs(Code::kUnavailable, _));
  }
  ExpectOthersUnharmed(5);
}

}  // namespace
}  // namespace gridclock
