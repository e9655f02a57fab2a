#include "server/core/scheduler.h"

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "server/core/device_states.h"
#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

Limits SmallLimits() {
  Limits limits;
  limits.queue = 4;
  limits.client_queue = 3;
  return limits;
}

class SchedulerTest : public SchedulerFixture {
 protected:
  SchedulerTest() : SchedulerFixture("cpu", SmallLimits(), 16 * kPage, 12 * kPage) {}

  Job MakeLarge(const std::string& principal = "ann") {
    Job job = MakeJob(principal);
    job.operand_bytes = Scheduler::kSmallBytes + 1;
    return job;
  }
  absl::Status TrySubmit(Job job) {
    return scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false).status();
  }
};

TEST_F(SchedulerTest, RunsAJobFromItsAcceptanceToItsEnd) {
  const auto worker = Ready();
  Call call = Submit(MakeJob());
  ASSERT_TRUE(call.listener->accepted().has_value());
  EXPECT_EQ(call.listener->accepted()->id, call.id);
  EXPECT_NE(scheduler_.Active(call.id), nullptr);
  EXPECT_THAT(worker->orders(), IsEmpty());

  clock_.Advance(absl::Microseconds(3));
  scheduler_.Start(call.id);
  EXPECT_THAT(worker->orders(), ElementsAre(call.id));
  EXPECT_TRUE(Done(call.id));
  EXPECT_THAT(call.listener->status(), IsOk());
  const auto phases = call.listener->end()->outcome->phases;
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0], (Phase{PhaseKind::kReceived, 0, 3000}));
  EXPECT_EQ(phases[1], (Phase{PhaseKind::kQueued, 3000, 3000}));
  EXPECT_TRUE(scheduler_.idle());
  EXPECT_EQ(arena_.used(), 0u);
  EXPECT_EQ(call.listener->end()->waited, absl::ZeroDuration());
  EXPECT_EQ(observer_.count("finished"), 1);
}

TEST_F(SchedulerTest, MovesTheRangesOfAJobToItsBlock) {
  const Call first = Submit(MakeJob());
  Job job = MakeJob();
  job.inputs.resize(1);
  job.inputs[0].memory = {.offset = 64, .size = 8};
  const Call second = Submit(std::move(job));
  EXPECT_EQ(second.listener->accepted()->memory.offset, kPage);
  EXPECT_EQ(second.listener->accepted()->inputs[0].memory.offset, kPage + 64);
}

TEST_F(SchedulerTest, FreedMemoryReturnsWhenTheLastOwnerLetsGo) {
  Ready();
  Call call = SubmitReady(MakeJob());
  std::shared_ptr<const ActiveJob> held = scheduler_.Active(call.id);
  Done(call.id);
  EXPECT_EQ(arena_.used(), kPage);
  held.reset();
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(SchedulerTest, AJobWithoutItsInputsKeepsItsPlaceAndIsPassedOver) {
  const auto worker = Ready();
  const Call slow = Submit(MakeLarge());
  const Call quick = SubmitReady(MakeLarge());
  EXPECT_THAT(worker->orders(), ElementsAre(quick.id));
  const Call third = SubmitReady(MakeLarge());
  const Call fourth = SubmitReady(MakeLarge());
  scheduler_.Start(slow.id);
  Done(quick.id);
  Done(third.id);
  EXPECT_THAT(worker->orders(), ElementsAre(quick.id, third.id, slow.id, fourth.id));
}

TEST_F(SchedulerTest, FullQueuesRefuseAtOnceAndSayWhenToComeBack) {
  for (int i = 0; i < 3; ++i) Submit(MakeJob("ann"));
  const absl::Status own = TrySubmit(MakeJob("ann"));
  EXPECT_THAT(own, StatusIs(Code::kResourceExhausted, HasSubstr("of this client")));
  EXPECT_THAT(own, ReasonIs("QUEUE_FULL"));
  EXPECT_GT(DetailsOf(own).retry_after, absl::ZeroDuration());
  EXPECT_EQ(DetailsOf(own).metadata.at("limit"), "client_queue");
  Submit(MakeJob("bob"));
  EXPECT_THAT(TrySubmit(MakeJob("bob")),
              StatusIs(Code::kResourceExhausted, HasSubstr("of all clients")));
  EXPECT_EQ(observer_.count("rejected"), 2);
}

TEST_F(SchedulerTest, WhatWaitsAtTheWorkerIsInTheQueueToo) {
  const auto worker = Ready();
  std::vector<Call> calls;
  calls.reserve(4);
  for (int i = 0; i < 4; ++i) calls.push_back(SubmitReady(MakeJob("ann")));
  EXPECT_EQ(worker->orders().size(), 4u);
  EXPECT_THAT(TrySubmit(MakeJob("ann")),
              StatusIs(Code::kResourceExhausted, HasSubstr("3 calls of this client")));
  SubmitReady(MakeJob("bob"));
  EXPECT_THAT(TrySubmit(MakeJob("bob")),
              StatusIs(Code::kResourceExhausted, HasSubstr("4 calls of all clients")));
  const Scheduler::Usage usage = scheduler_.usage().at("cpu");
  EXPECT_EQ(usage.queued, 4);
  EXPECT_EQ(usage.queued_of_one, 3);
  EXPECT_EQ(usage.running, 1);
  EXPECT_TRUE(Done(calls[0].id));
  EXPECT_THAT(TrySubmit(MakeJob("bob")), IsOk());
}

TEST_F(SchedulerTest, PrincipalsTakeTurns) {
  const Call a1 = SubmitReady(MakeLarge("ann"));
  const Call a2 = SubmitReady(MakeLarge("ann"));
  const Call b1 = SubmitReady(MakeLarge("bob"));
  const auto worker = Ready();
  for (const JobId id : {a1.id, b1.id, a2.id}) EXPECT_TRUE(Done(id)) << id;
  EXPECT_THAT(worker->orders(), ElementsAre(a1.id, b1.id, a2.id));
}

TEST_F(SchedulerTest, SixteenSmallOrdersWaitAtTheWorkerButOnlyTwoLargeOnes) {
  Limits limits;
  Scheduler scheduler(clock_, limits, arena_, observer_);
  auto worker = std::make_shared<FakeWorker>();
  scheduler.OnWorkerReady("cpu", worker, 1);
  const auto submit = [&](Job job) {
    job.memory.size = 0;
    const auto id = scheduler.Submit(std::move(job), std::make_shared<FakeListener>(), false);
    scheduler.Start(*id);
    return *id;
  };
  for (int i = 0; i < 20; ++i) submit(MakeJob());
  EXPECT_EQ(worker->orders().size(), 16u);
  // A large one waits until all but one are done; the small ones behind it may not pass.
  const JobId large = submit(MakeLarge("bob"));
  for (JobId id = 1; id <= 14; ++id) {
    scheduler.OnDone(id, 1, {.status = absl::OkStatus(), .outcome = Outcome{}});
  }
  EXPECT_EQ(worker->orders().size(), 16u);
  scheduler.OnDone(15, 1, {.status = absl::OkStatus(), .outcome = Outcome{}});
  ASSERT_EQ(worker->orders().size(), 17u);
  EXPECT_EQ(worker->orders().back(), large);
}

// ---- Deadlines and cancellation. ----

TEST_F(SchedulerTest, SmallOrdersBehindASlowOneAreAskedBackForOthersTurns) {
  const auto worker = Ready();
  const Call slow = SubmitReady(MakeJob("ann"));
  const Call second = SubmitReady(MakeJob("ann"));
  const Call third = SubmitReady(MakeJob("ann"));
  worker->Run(slow.id, clock_.Now());
  clock_.Advance(absl::Milliseconds(11));
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), IsEmpty()) << "nobody else waits";
  const Call other = SubmitReady(MakeJob("bob"));
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), ElementsAre(second.id, third.id));
  EXPECT_TRUE(Done(slow.id));
  const JobResult back = {absl::CancelledError("before it ran"), {}};
  for (const Call* call : {&second, &third}) {
    EXPECT_TRUE(scheduler_.OnDone(call->id, 1, back));
    EXPECT_EQ(call->listener->ends(), 0);
  }
  const std::vector<JobId> orders = worker->orders();
  EXPECT_THAT(std::vector<JobId>(orders.begin() + 4, orders.end()),
              ElementsAre(second.id, third.id));
  for (const Call* call : {&other, &second, &third}) EXPECT_TRUE(Done(call->id));
  EXPECT_THAT(third.listener->status(), IsOk());
}

TEST_F(SchedulerTest, AnOrderThatWasAskedBackAndThenCancelledEnds) {
  const auto worker = Ready();
  const Call slow = SubmitReady(MakeJob("ann"));
  const Call second = SubmitReady(MakeJob("ann"));
  SubmitReady(MakeJob("bob"));
  clock_.Advance(absl::Milliseconds(11));
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), ElementsAre(second.id));
  scheduler_.Cancel(second.id, absl::CancelledError("by the client"));
  EXPECT_TRUE(Done(slow.id));
  EXPECT_TRUE(scheduler_.OnDone(second.id, 1, {absl::CancelledError("before it ran"), {}}));
  EXPECT_THAT(second.listener->status(), StatusIs(Code::kCancelled, HasSubstr("client")));
}

TEST_F(SchedulerTest, D15_ExpiredOnArrivalIsNotQueued) {
  Job job = MakeJob();
  job.deadline = clock_.Now();
  EXPECT_THAT(TrySubmit(std::move(job)), StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(SchedulerTest, D16_ExpiredInTheQueueNeverReachesTheWorker) {
  Job job = MakeJob();
  job.deadline = clock_.Now() + absl::Seconds(1);
  const Call call = SubmitReady(std::move(job));
  clock_.Advance(absl::Seconds(1));
  scheduler_.Tick();
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, HasSubstr("queue")));
  EXPECT_EQ(DetailsOf(call.listener->status()).reason, "") << "it is the caller's own";
  EXPECT_TRUE(call.listener->end()->was_ready);
  EXPECT_THAT(Ready()->orders(), IsEmpty());
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(SchedulerTest, OneWhoseInputsDidNotComeInTimeWasNeverReady) {
  Job job = MakeJob();
  job.deadline = clock_.Now() + absl::Seconds(1);
  const Call call = Submit(std::move(job));
  scheduler_.Cancel(call.id, absl::DeadlineExceededError("the call's deadline passed"));
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_FALSE(call.listener->end()->was_ready);
}

TEST_F(SchedulerTest, D17_WithoutADeadlineTheQueueEndsAfterQueueSeconds) {
  const Call call = SubmitReady(MakeJob());
  clock_.Advance(absl::Seconds(59));
  scheduler_.Tick();
  EXPECT_EQ(call.listener->ends(), 0);
  clock_.Advance(absl::Seconds(1));
  scheduler_.Tick();
  const absl::Status status = call.listener->status();
  EXPECT_THAT(status, StatusIs(Code::kDeadlineExceeded, HasSubstr("waited 60 s in the queue")));
  EXPECT_EQ(DetailsOf(status).reason, "QUEUE_WAIT");
  EXPECT_EQ(DetailsOf(status).metadata.at("limit"), "queue_seconds");
}

TEST_F(SchedulerTest, D18_CancelledInTheQueueEndsAtOnce) {
  const Call call = SubmitReady(MakeJob());
  scheduler_.Cancel(call.id, absl::CancelledError("by the client"));
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kCancelled, _));
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(SchedulerTest, D18_CancelledWhileItRunsEndsWhenTheWorkerStops) {
  const auto worker = Ready();
  const Call call = SubmitReady(MakeJob());
  worker->Run(call.id, clock_.Now());
  scheduler_.Cancel(call.id, absl::CancelledError("by the client"));
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), ElementsAre(call.id));
  EXPECT_EQ(call.listener->ends(), 0);
  Done(call.id);
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kCancelled, _));
}

TEST_F(SchedulerTest, D18_CancelledBehindAnotherAtTheWorkerIsAnsweredBeforeItsTurn) {
  const auto worker = Ready();
  const Call first = SubmitReady(MakeJob());
  const Call second = SubmitReady(MakeJob());
  worker->Run(first.id, clock_.Now());
  scheduler_.Cancel(second.id, absl::CancelledError("by the client"));
  scheduler_.Tick();
  EXPECT_THAT(second.listener->status(), StatusIs(Code::kCancelled, _));
  EXPECT_EQ(arena_.used(), 2 * kPage) << "the worker may still write there";
  EXPECT_TRUE(Done(first.id));
  EXPECT_TRUE(Done(second.id));
  EXPECT_EQ(second.listener->ends(), 1);
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(SchedulerTest, E6_AnEndlessKernelIsKilledAQuarterSecondAfterItsLimit) {
  const auto worker = Ready();
  Job job = MakeJob();
  job.kernel_time_limit = absl::Seconds(1);
  const Call call = SubmitReady(std::move(job));
  worker->Run(call.id, clock_.Now());
  clock_.Advance(absl::Milliseconds(1249));
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  scheduler_.Tick();
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), ElementsAre("time_limit"));
  scheduler_.OnWorkerLost("cpu", 1,
                          {.reason = "time_limit", .signal = 0, .running = call.id, .detail = ""});
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, HasSubstr("1 s")));
  EXPECT_THAT(call.listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
}

// A measured and verified order may take longer than one launch; none of its launches may.
TEST_F(SchedulerTest, E6_AnEndlessLaunchOfAMeasurementIsKilledAtTheLimitOfALaunch) {
  const auto worker = Ready();
  Job job = MakeJob();
  job.measure.emplace();
  job.verify = true;
  job.kernel_time_limit = absl::Seconds(1);
  const Call call = SubmitReady(std::move(job));
  const absl::Time began = clock_.Now();
  for (int launch = 0; launch < 3; ++launch) {
    worker->Run(call.id, began, clock_.Now());
    clock_.Advance(absl::Milliseconds(900));
    scheduler_.Tick();
  }
  worker->Run(call.id, began);  // Between two launches.
  clock_.Advance(absl::Milliseconds(400));
  scheduler_.Tick();
  worker->Run(call.id, began, clock_.Now());
  clock_.Advance(absl::Milliseconds(1249));
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), IsEmpty());
  clock_.Advance(absl::Milliseconds(1));
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), ElementsAre("time_limit"));
}

// What the worker says of itself neither gives it more time nor takes its job's time away.
TEST_F(SchedulerTest, NoTimeThatAWorkerSaysMovesTheEndOfItsOrder) {
  const absl::Time times[] = {absl::InfinitePast(),
                              absl::UnixEpoch() + absl::Nanoseconds(std::int64_t{-1} << 63),
                              absl::UnixEpoch(),
                              clock_.Now() + absl::Seconds(100),
                              absl::UnixEpoch() + absl::Nanoseconds(~(std::int64_t{-1} << 63)),
                              absl::InfiniteFuture()};
  std::uint64_t generation = 0;
  for (const absl::Time since : times) {
    for (const absl::Time launched : times) {
      const auto worker = Ready(++generation);
      Job job = MakeJob();
      job.kernel_time_limit = absl::Seconds(1);
      const Call call = SubmitReady(std::move(job));
      worker->Run(call.id, since, launched);
      scheduler_.Tick();
      clock_.Advance(absl::Milliseconds(1249));
      scheduler_.Tick();
      EXPECT_THAT(worker->kills(), IsEmpty()) << since << ", " << launched;
      clock_.Advance(absl::Milliseconds(1));
      scheduler_.Tick();
      EXPECT_THAT(worker->kills(), ElementsAre("time_limit")) << since << ", " << launched;
      scheduler_.OnWorkerLost(
          "cpu", generation,
          {.reason = "time_limit", .signal = 0, .running = call.id, .detail = ""});
    }
  }
}

TEST_F(SchedulerTest, ADeviceIsBusyWhileItsWorkerHoldsOrders) {
  KernelTable table({"cpu"});
  table.SetState("cpu", WorkerState::kReady);
  const auto state = [&] { return DevicesNow(table, scheduler_).at(0).state; };
  Ready();
  const Call call = Submit(MakeJob());
  EXPECT_EQ(state(), WorkerState::kReady);
  scheduler_.Start(call.id);
  EXPECT_EQ(state(), WorkerState::kBusy);
  table.SetState("cpu", WorkerState::kDead);
  EXPECT_EQ(state(), WorkerState::kDead);
  table.SetState("cpu", WorkerState::kReady);
  Done(call.id);
  EXPECT_EQ(state(), WorkerState::kReady);
}

TEST_F(SchedulerTest, ARunPastTheCallsDeadlineIsToldToStopAndThenKilled) {
  const auto worker = Ready();
  Job job = MakeJob();
  job.deadline = clock_.Now() + absl::Seconds(1);
  const Call call = SubmitReady(std::move(job));
  worker->Run(call.id, clock_.Now());
  clock_.Advance(absl::Seconds(1));
  scheduler_.Tick();
  EXPECT_THAT(worker->cancels(), ElementsAre(call.id));
  EXPECT_THAT(worker->kills(), IsEmpty());
  clock_.Advance(Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), ElementsAre("deadline"));
  scheduler_.OnWorkerLost("cpu", 1,
                          {.reason = "deadline", .signal = 0, .running = call.id, .detail = ""});
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_THAT(call.listener->status(), ReasonIs(""));
}

TEST_F(SchedulerTest, AWorkerThatHoldsOrdersAndRunsNoneHangs) {
  const auto worker = Ready();
  SubmitReady(MakeJob());
  for (int i = 0; i < 5; ++i) {
    scheduler_.Tick();
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_THAT(worker->kills(), IsEmpty());
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), ElementsAre("hang"));
}

TEST_F(SchedulerTest, AWorkerIsNotHungForATimeInWhichNobodyLooked) {
  const auto worker = Ready();
  SubmitReady(MakeJob());
  scheduler_.Tick();
  clock_.Advance(absl::Seconds(20));
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), IsEmpty()) << "it may have stood still as we did";
}

// ---- Loss. ----

TEST_F(SchedulerTest, E2_KilledFromOutsideCostsTheRunningJobAlone) {
  Ready();
  const Call running = SubmitReady(MakeJob());
  const Call waiting = SubmitReady(MakeJob());
  scheduler_.OnWorkerLost(
      "cpu", 1,
      {.reason = "signal", .signal = SIGKILL, .running = running.id, .detail = "signal 9"});
  EXPECT_THAT(running.listener->status(), StatusIs(Code::kUnavailable, HasSubstr("signal 9")));
  EXPECT_THAT(running.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_EQ(DetailsOf(running.listener->status()).metadata.at("execution_state"), "UNKNOWN");
  EXPECT_EQ(waiting.listener->ends(), 0);
  const auto next = Ready(2);
  EXPECT_THAT(next->orders(), ElementsAre(waiting.id));
  EXPECT_FALSE(Done(waiting.id, 1)) << "of the old generation";
  EXPECT_TRUE(Done(waiting.id, 2));
  EXPECT_THAT(waiting.listener->status(), IsOk());
}

TEST_F(SchedulerTest, E4_ItsOwnSignalIsOurBugInATrustedWorkerAndTheKernelsInAGuest) {
  Ready();
  const Call ours = SubmitReady(MakeJob());
  const WorkerLoss loss = {
      .reason = "signal", .signal = SIGSEGV, .running = ours.id, .detail = "signal 11"};
  scheduler_.OnWorkerLost("cpu", 1, loss);
  EXPECT_THAT(ours.listener->status(), StatusIs(Code::kInternal, HasSubstr("signal 11")));
  Ready(2, WorkerRole::kGuest);
  const Call theirs = SubmitReady(MakeJob());
  scheduler_.OnWorkerLost(
      "cpu", 2, {.reason = "signal", .signal = SIGSEGV, .running = theirs.id, .detail = ""});
  EXPECT_THAT(theirs.listener->status(), StatusIs(Code::kFailedPrecondition, _));
  EXPECT_THAT(theirs.listener->status(), ReasonIs("KERNEL_FAULT"));
}

TEST_F(SchedulerTest, AJobIsSentAgainOnce) {
  Ready(1);
  const Call call = SubmitReady(MakeJob());
  scheduler_.OnWorkerLost("cpu", 1, {.reason = "exit", .signal = 0, .running = 0, .detail = ""});
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(call.id));
  scheduler_.OnWorkerLost("cpu", 2,
                          {.reason = "exit", .signal = 0, .running = 0, .detail = "exit code 3"});
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kUnavailable, HasSubstr("exit code 3")));
  EXPECT_TRUE(scheduler_.idle());
}

TEST_F(SchedulerTest, AJobThatNeverBeganIsSentAgainAsOftenAsNeeded) {
  Ready(1);
  Call running = SubmitReady(MakeJob());
  const Call behind = SubmitReady(MakeJob("bob"));
  for (std::uint64_t generation = 1; generation <= 5; ++generation) {
    const Call next = SubmitReady(MakeJob());
    scheduler_.OnWorkerLost(
        "cpu", generation,
        {.reason = "signal", .signal = SIGKILL, .running = running.id, .detail = "signal 9"});
    EXPECT_THAT(running.listener->status(), ReasonIs("WORKER_CRASHED"));
    EXPECT_EQ(behind.listener->ends(), 0) << "after worker " << generation;
    Ready(generation + 1);
    running = next;
  }
  EXPECT_TRUE(Done(behind.id, 6));
  EXPECT_THAT(behind.listener->status(), IsOk());
}

TEST_F(SchedulerTest, AWorkerLostBetweenTwoOrdersCostsTheOldestAtMost) {
  Ready(1);
  const Call oldest = SubmitReady(MakeJob());
  const Call second = SubmitReady(MakeJob());
  const Call third = SubmitReady(MakeJob());
  for (std::uint64_t generation = 1; generation <= 2; ++generation) {
    scheduler_.OnWorkerLost(
        "cpu", generation,
        {.reason = "signal", .signal = SIGKILL, .running = 0, .detail = "signal 9"});
    Ready(generation + 1);
  }
  EXPECT_THAT(oldest.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_EQ(second.listener->ends(), 0);
  EXPECT_EQ(third.listener->ends(), 0);
  EXPECT_TRUE(Done(second.id, 3));
  EXPECT_TRUE(Done(third.id, 3));
}

TEST_F(SchedulerTest, AJobThatMayHaveOverwrittenItsInputsIsNotSentAgain) {
  Ready();
  Job job = MakeJob();
  job.inputs.resize(1);
  job.outputs.resize(1);
  job.outputs[0].in_place_of = 0;
  const Call first = SubmitReady(job);
  const Call running = SubmitReady(MakeJob());
  const Call behind = SubmitReady(std::move(job));
  scheduler_.OnWorkerLost(
      "cpu", 1, {.reason = "signal", .signal = SIGKILL, .running = running.id, .detail = ""});
  EXPECT_THAT(first.listener->status(), StatusIs(Code::kUnavailable, _));
  EXPECT_EQ(behind.listener->ends(), 0) << "it never began";
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(behind.id));
}

TEST_F(SchedulerTest, E9_StrangeAnswersAreNotTaken) {
  Ready();
  const Call call = SubmitReady(MakeJob());
  EXPECT_FALSE(Done(call.id + 1000));
  EXPECT_FALSE(Done(call.id, 7));
  EXPECT_TRUE(Done(call.id));
  EXPECT_FALSE(Done(call.id)) << "answered before";
  const Call unsent = Submit(MakeJob());
  EXPECT_FALSE(Done(unsent.id));
}

TEST_F(SchedulerTest, ADeviceThatIsDownEndsItsQueueAndRefusesNewJobs) {
  const Call call = SubmitReady(MakeJob());
  scheduler_.OnDeviceDown("cpu", absl::UnavailableError("crash loop"));
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kUnavailable, "crash loop"));
  EXPECT_THAT(TrySubmit(MakeJob()), StatusIs(Code::kUnavailable, "crash loop"));
  Ready();
  EXPECT_THAT(TrySubmit(MakeJob()), IsOk());
}

TEST_F(SchedulerTest, DrainingLetsOldJobsEndAndNoNewOnesIn) {
  Ready();
  const Call call = SubmitReady(MakeJob());
  scheduler_.Drain();
  EXPECT_THAT(TrySubmit(MakeJob()), ReasonIs("DRAINING"));
  EXPECT_FALSE(scheduler_.idle());
  Done(call.id);
  EXPECT_THAT(call.listener->status(), IsOk());
  EXPECT_TRUE(scheduler_.idle());
}

// ---- Memory. ----

TEST_F(SchedulerTest, WithoutWaitingFullMemoryIsRefused) {
  const Call big = Submit(MakeJob("ann", 12 * kPage));
  EXPECT_THAT(TrySubmit(MakeJob("ann")), ReasonIs("MEMORY_FULL"));
  EXPECT_THAT(TrySubmit(MakeJob("bob", 13 * kPage)), ReasonIs("TOO_LARGE"));
}

TEST_F(SchedulerTest, WaitersForMemoryOfOnePrincipalAreServedInOrderAndHoldUpNobodyElse) {
  Ready();
  const Call big = SubmitReady(MakeJob("ann", 12 * kPage));
  const Call first = Submit(MakeJob("bob", 8 * kPage), true);
  const Call second = Submit(MakeJob("bob", 2 * kPage), true);
  const Call other = Submit(MakeJob("cy", 2 * kPage), true);
  scheduler_.Tick();
  EXPECT_FALSE(first.listener->accepted().has_value());
  EXPECT_FALSE(second.listener->accepted().has_value()) << "it would fit, but it waits its turn";
  EXPECT_TRUE(other.listener->accepted().has_value());
  EXPECT_EQ(scheduler_.Active(first.id), nullptr);
  Done(big.id);
  scheduler_.Tick();
  EXPECT_TRUE(first.listener->accepted().has_value());
  EXPECT_TRUE(second.listener->accepted().has_value());
}

TEST_F(SchedulerTest, APrincipalAtItsOwnLimitDoesNotHoldUpOthers) {
  const Call big = Submit(MakeJob("ann", 12 * kPage));
  const Call more = Submit(MakeJob("ann", kPage), true);
  const Call other = Submit(MakeJob("bob", kPage), true);
  scheduler_.Tick();
  EXPECT_FALSE(more.listener->accepted().has_value());
  EXPECT_TRUE(other.listener->accepted().has_value());
}

TEST_F(SchedulerTest, AWaiterForMemoryMayBeCancelledOrRunOutOfTime) {
  const Call big = Submit(MakeJob("ann", 12 * kPage));
  const Call first = Submit(MakeJob("bob", 8 * kPage), true);
  const Call second = Submit(MakeJob("bob", 8 * kPage), true);
  scheduler_.Cancel(first.id, absl::CancelledError("by the client"));
  EXPECT_THAT(first.listener->status(), StatusIs(Code::kCancelled, _));
  clock_.Advance(absl::Seconds(60));
  scheduler_.Tick();
  EXPECT_THAT(second.listener->status(), StatusIs(Code::kDeadlineExceeded, _));
  EXPECT_EQ(big.listener->ends(), 0) << "its inputs still arrive";
}

TEST_F(SchedulerTest, PassesSamplesOnAndTellsTheExpectedWait) {
  Ready();
  const Call first = SubmitReady(MakeLarge());
  scheduler_.OnSamples(first.id, 1, 0, std::vector<double>{1.5, 2.5}, false);
  scheduler_.OnSamples(first.id, 9, 0, std::vector<double>{9.5}, false);
  EXPECT_THAT(first.listener->samples(), ElementsAre(1.5, 2.5));
  clock_.Advance(absl::Milliseconds(100));
  Done(first.id);
  SubmitReady(MakeLarge());
  const Call waiting = Submit(MakeLarge());
  EXPECT_EQ(waiting.listener->info().queue_position, 1u);
  EXPECT_GT(waiting.listener->info().expected_wait, absl::Milliseconds(1));
}

}  // namespace
}  // namespace gridclock
