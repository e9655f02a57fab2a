// What an operator does to jobs, devices and workers: by a clock that stands still and workers that
// only remember.
#include "server/core/admin.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;
using State = JobView::State;

constexpr std::uint64_t kArena = 64 * ArenaAllocator::kPage;

class AdminTest : public SchedulerFixture {
 protected:
  AdminTest() : SchedulerFixture("cuda:0", Limits(), kArena, kArena) {
    table_.SetState("cuda:0", WorkerState::kReady);
    table_.SetState("cuda:1", WorkerState::kReady);
  }
  Job Measured(const std::string& principal = "ann") const {
    Job job = MakeJob(principal);
    job.measure.emplace();
    return job;
  }
  Job Large() const {
    Job job = MakeJob();
    job.operand_bytes = Scheduler::kSmallBytes + 1;
    return job;
  }
  absl::StatusOr<JobId> TrySubmit(const std::string& device) {
    Job job = MakeJob();
    job.device = device;
    return scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false);
  }
  bool IsDrained(int device) const { return table_.Devices()[device].drained; }

  KernelTable table_{{"cuda:0", "cuda:1"}};
  Admin admin_{table_, scheduler_};
};

// ---- Jobs. ----

TEST_F(AdminTest, JobsAreListedOldestFirstWithWhatTheyWaitFor) {
  EXPECT_THAT(admin_.Jobs(), IsEmpty());
  const auto worker = Ready();
  const Call running = SubmitReady(Measured("ann"));
  worker->Run(running.id, clock_.Now());
  clock_.Advance(absl::Seconds(2));
  const Call behind = SubmitReady(Measured("bob"));
  const Call queued = SubmitReady(Measured("cid"));
  const Call sending = Submit(MakeJob("dan"));
  const Call wants_memory = Submit(MakeJob("eve", kArena), /*wait_for_memory=*/true);
  EXPECT_EQ(admin_.Jobs()[0].state, State::kQueued);  // Its worker has not said that it began.
  scheduler_.Tick();
  const std::vector<JobView> jobs = admin_.Jobs();
  ASSERT_THAT(jobs, SizeIs(5));
  EXPECT_EQ(jobs[0].id, running.id);
  EXPECT_EQ(jobs[0].state, State::kRunning);
  EXPECT_EQ(jobs[0].principal, "ann");
  EXPECT_EQ(jobs[0].kernel, "square");
  EXPECT_EQ(jobs[0].device, "cuda:0");
  EXPECT_EQ(jobs[0].age, absl::Seconds(2));
  EXPECT_EQ(jobs[0].sent, absl::Seconds(2));
  EXPECT_TRUE(jobs[0].measured);
  EXPECT_EQ(jobs[1].id, behind.id);
  EXPECT_EQ(jobs[1].state, State::kQueued);  // At the worker already.
  EXPECT_EQ(jobs[2].id, queued.id);
  EXPECT_EQ(jobs[2].state, State::kQueued);
  EXPECT_EQ(jobs[2].sent, absl::ZeroDuration());
  EXPECT_EQ(jobs[3].id, sending.id);
  EXPECT_EQ(jobs[3].state, State::kWaitsForInputs);
  EXPECT_EQ(jobs[4].id, wants_memory.id);
  EXPECT_EQ(jobs[4].state, State::kWaitsForMemory);
}

TEST_F(AdminTest, AWaitingJobIsCancelledAtOnce) {
  const Call call = SubmitReady(MakeJob("bob"));
  ASSERT_OK_AND_ASSIGN(const JobView job, admin_.Cancel(call.id));
  EXPECT_EQ(job.principal, "bob");
  EXPECT_EQ(job.state, State::kQueued);
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kCancelled, HasSubstr("operator")));
  EXPECT_THAT(call.listener->status(), ReasonIs("BY_OPERATOR"));
  EXPECT_EQ(call.listener->ends(), 1);
  EXPECT_THAT(admin_.Jobs(), IsEmpty());
}

TEST_F(AdminTest, ARunningJobIsToldToStopAndEndsWhenItsWorkerSaysSo) {
  const auto worker = Ready();
  const Call call = SubmitReady(MakeJob());
  worker->Run(call.id, clock_.Now());
  scheduler_.Tick();
  ASSERT_OK_AND_ASSIGN(const JobView job, admin_.Cancel(call.id));
  EXPECT_EQ(job.state, State::kRunning);
  EXPECT_EQ(worker->cancels(), std::vector<JobId>{call.id});
  EXPECT_EQ(call.listener->ends(), 0);
  EXPECT_EQ(admin_.Jobs()[0].state, State::kStopping);
  EXPECT_TRUE(Done(call.id));
  EXPECT_THAT(call.listener->status(), ReasonIs("BY_OPERATOR"));
}

TEST_F(AdminTest, AJobThatIsNotThereIsNotFoundAndNearOnesAreNamed) {
  EXPECT_THAT(admin_.Cancel(7).status(),
              StatusIs(Code::kNotFound, AllOf(HasSubstr("no job 7"), HasSubstr("there are 0"))));
  const Call call = SubmitReady(MakeJob());
  for (int i = 0; i < 9; ++i) SubmitReady(MakeJob());
  EXPECT_THAT(admin_.Cancel(11).status(),
              StatusIs(Code::kNotFound, AllOf(HasSubstr("there are 10"), HasSubstr("'10'"))));
  EXPECT_THAT(admin_.Cancel(call.id).status(), IsOk());
  EXPECT_THAT(admin_.Cancel(call.id).status(), StatusIs(Code::kNotFound, HasSubstr("no job")));
}

// ---- Drain. ----

TEST_F(AdminTest, ADrainedDeviceRunsWhatItHasAndTakesNoMore) {
  const auto worker = Ready();
  const Call running = SubmitReady(Measured());
  const Call behind = SubmitReady(Measured());
  const Call queued = SubmitReady(Measured());
  ASSERT_OK_AND_ASSIGN(const Admin::Drained done, admin_.Drain("cuda:0", false));
  EXPECT_TRUE(done.changed);
  EXPECT_EQ(done.jobs, 3);
  EXPECT_TRUE(IsDrained(0));
  EXPECT_FALSE(IsDrained(1));

  const absl::Status refused = TrySubmit("cuda:0").status();
  EXPECT_THAT(refused, StatusIs(Code::kUnavailable, HasSubstr("drained")));
  EXPECT_THAT(refused, ReasonIs("DEVICE_DRAINED"));
  EXPECT_TRUE(DetailsOf(refused).retry_after.has_value());
  EXPECT_THAT(TrySubmit("cuda:1").status(), IsOk());

  for (const Call& call : {running, behind, queued}) {
    EXPECT_TRUE(Done(call.id));
    EXPECT_THAT(call.listener->status(), IsOk());
  }
  EXPECT_THAT(worker->kills(), IsEmpty());

  ASSERT_OK_AND_ASSIGN(const Admin::Drained back, admin_.Undrain("cuda:0"));
  EXPECT_TRUE(back.changed);
  EXPECT_THAT(TrySubmit("cuda:0").status(), IsOk());
}

TEST_F(AdminTest, DrainingTwiceAndUndrainingTwiceChangeNothing) {
  ASSERT_THAT(admin_.Drain("cuda:0", false).status(), IsOk());
  ASSERT_OK_AND_ASSIGN(const Admin::Drained again, admin_.Drain("cuda:0", false));
  EXPECT_FALSE(again.changed);
  ASSERT_THAT(admin_.Undrain("cuda:0").status(), IsOk());
  ASSERT_OK_AND_ASSIGN(const Admin::Drained back, admin_.Undrain("cuda:0"));
  EXPECT_FALSE(back.changed);
}

TEST_F(AdminTest, TheLastDeviceIsDrainedOnlyOnPurpose) {
  ASSERT_THAT(admin_.Drain("cuda:0", false).status(), IsOk());
  const absl::Status refused = admin_.Drain("cuda:1", false).status();
  EXPECT_THAT(refused, StatusIs(Code::kFailedPrecondition, HasSubstr("--last")));
  EXPECT_THAT(refused, ReasonIs("LAST_DEVICE"));
  EXPECT_THAT(TrySubmit("cuda:1").status(), IsOk());
  EXPECT_THAT(admin_.Drain("cuda:1", true).status(), IsOk());
  EXPECT_THAT(TrySubmit("cuda:1").status(), ReasonIs("DEVICE_DRAINED"));
}

TEST_F(AdminTest, ADeadDeviceIsNoOtherOne) {
  table_.SetState("cuda:1", WorkerState::kQuarantined);
  EXPECT_THAT(admin_.Drain("cuda:0", false).status(), ReasonIs("LAST_DEVICE"));
}

TEST_F(AdminTest, ADrainedDeviceStaysSoWhenItsWorkerIsReplaced) {
  Ready(1);
  ASSERT_THAT(admin_.Drain("cuda:0", false).status(), IsOk());
  scheduler_.OnWorkerLost("cuda:0", 1, {.reason = "signal", .signal = 9, .detail = "signal 9"});
  table_.SetState("cuda:0", WorkerState::kReady);
  Ready(2);
  EXPECT_TRUE(IsDrained(0));
  EXPECT_THAT(TrySubmit("cuda:0").status(), ReasonIs("DEVICE_DRAINED"));
}

TEST_F(AdminTest, BothLanesAreDrained) {
  FakeGuests guests;
  scheduler_.AddGuests("cuda:0", guests);
  ASSERT_THAT(admin_.Drain("cuda:0", false).status(), IsOk());
  Job job = MakeJob();
  job.program = std::make_shared<const JobProgram>();
  EXPECT_THAT(scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false).status(),
              ReasonIs("DEVICE_DRAINED"));
}

TEST_F(AdminTest, OneDeviceMustBeNamed) {
  EXPECT_THAT(admin_.Drain("", false).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("want a name")));
  EXPECT_THAT(admin_.Drain("cuda", true).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("got 'cuda', which means 2")));
  EXPECT_THAT(admin_.Undrain("cuda:7").status(),
              StatusIs(Code::kNotFound, HasSubstr("'cuda:0', 'cuda:1'")));
  EXPECT_THAT(admin_.Restart("cuda:7", false).status(), StatusIs(Code::kNotFound, HasSubstr("")));
  EXPECT_FALSE(IsDrained(0) || IsDrained(1));
}

// ---- Restart. ----

TEST_F(AdminTest, AWorkerIsReplacedWhenTheJobsThatItHoldsAreDone) {
  const auto worker = Ready(1);
  const Call running = SubmitReady(Large());
  const Call behind = SubmitReady(Large());
  const Call queued = SubmitReady(Large());
  ASSERT_OK_AND_ASSIGN(const Admin::Restarted done, admin_.Restart("cuda:0", /*now=*/false));
  EXPECT_EQ(done.jobs, 2);
  EXPECT_TRUE(Done(running.id));
  EXPECT_THAT(worker->kills(), IsEmpty());
  EXPECT_TRUE(Done(behind.id));
  EXPECT_THAT(behind.listener->status(), IsOk());
  EXPECT_EQ(worker->kills(), std::vector<std::string>{"restart"});
  EXPECT_EQ(worker->orders(), (std::vector<JobId>{running.id, behind.id}));

  scheduler_.OnWorkerLost("cuda:0", 1, {.reason = "restart", .detail = "restarted"});
  const auto next = Ready(2);
  EXPECT_EQ(next->orders(), std::vector<JobId>{queued.id});
  EXPECT_TRUE(Done(queued.id, 2));
  EXPECT_THAT(next->kills(), IsEmpty());
  EXPECT_EQ(observer_.count("lost restart"), 1);
}

TEST_F(AdminTest, AnIdleWorkerIsReplacedAtOnce) {
  const auto worker = Ready();
  ASSERT_THAT(admin_.Restart("cuda:0", false).status(), IsOk());
  EXPECT_EQ(worker->kills(), std::vector<std::string>{"restart"});
}

TEST_F(AdminTest, NowCostsTheJobThatRunsAndNoOther) {
  const auto worker = Ready(1);
  const Call running = SubmitReady(Large());
  const Call behind = SubmitReady(Large());
  worker->Run(running.id, clock_.Now());
  ASSERT_OK_AND_ASSIGN(const Admin::Restarted done, admin_.Restart("cuda:0", /*now=*/true));
  EXPECT_EQ(done.jobs, 2);
  EXPECT_EQ(worker->kills(), std::vector<std::string>{"restart"});
  scheduler_.OnWorkerLost(
      "cuda:0", 1,
      {.reason = "restart", .running = running.id, .detail = "restarted by an operator"});
  EXPECT_THAT(running.listener->status(), StatusIs(Code::kUnavailable, HasSubstr("operator")));
  EXPECT_THAT(running.listener->status(), ReasonIs("WORKER_CRASHED"));
  const auto next = Ready(2);
  EXPECT_EQ(next->orders(), std::vector<JobId>{behind.id});
}

TEST_F(AdminTest, NowHastensARestartThatWaits) {
  const auto worker = Ready();
  SubmitReady(Measured());
  ASSERT_THAT(admin_.Restart("cuda:0", false).status(), IsOk());
  ASSERT_THAT(admin_.Restart("cuda:0", false).status(), IsOk());
  EXPECT_THAT(worker->kills(), IsEmpty());
  ASSERT_THAT(admin_.Restart("cuda:0", true).status(), IsOk());
  EXPECT_EQ(worker->kills(), std::vector<std::string>{"restart"});
}

TEST_F(AdminTest, ADeviceWithoutAWorkerIsNotRestarted) {
  const absl::Status none = admin_.Restart("cuda:0", false).status();
  EXPECT_THAT(none, StatusIs(Code::kFailedPrecondition, HasSubstr("no worker")));
  EXPECT_THAT(none, ReasonIs("NO_WORKER"));
}

TEST_F(AdminTest, AGuestEndsWithTheWorkerAndNobodyIsBlamed) {
  FakeGuests guests;
  scheduler_.AddGuests("cuda:0", guests);
  const auto worker = Ready(1);
  const auto guest = std::make_shared<FakeWorker>(WorkerRole::kGuest);
  scheduler_.OnWorkerReady(GuestLane("cuda:0"), guest, 2);
  Job job = MakeJob("ann");
  job.program = std::make_shared<const JobProgram>();
  const Call call = SubmitReady(std::move(job));
  ASSERT_EQ(guest->orders(), std::vector<JobId>{call.id});
  guest->Run(call.id, clock_.Now());

  ASSERT_THAT(admin_.Restart("cuda:0", true).status(), IsOk());
  EXPECT_EQ(worker->kills(), std::vector<std::string>{"restart"});
  EXPECT_EQ(guest->kills(), std::vector<std::string>{"restart"});
  scheduler_.OnWorkerLost(GuestLane("cuda:0"), 2,
                          {.reason = "restart", .running = call.id, .detail = "restarted"});
  EXPECT_THAT(call.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_THAT(guests.blamed(), IsEmpty());
}

}  // namespace
}  // namespace gridclock
