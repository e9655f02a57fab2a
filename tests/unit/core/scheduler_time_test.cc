// What becomes of calls whose time is over, of a worker that cannot be ended, and of calls that
// come back from a worker.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/core/scheduler_fixture.h"

namespace gridclock {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

class SchedulerTimeTest : public SchedulerFixture {
 protected:
  SchedulerTimeTest() : SchedulerFixture("cuda:0", Limits(), 64 * kPage, 64 * kPage) {}

  Job MakeJob(const std::string& principal, absl::Duration limit) {
    Job job = SchedulerFixture::MakeJob(principal);
    job.kernel_time_limit = limit;
    return job;
  }
  Call Submit(Job job) { return SubmitReady(std::move(job)); }
  Call Submit(const std::string& principal = "ann", absl::Duration limit = absl::Seconds(1)) {
    return Submit(MakeJob(principal, limit));
  }
  void Lose(JobId running, std::uint64_t generation = 1) {
    scheduler_.OnWorkerLost(
        "cuda:0", generation,
        {.reason = "signal", .signal = SIGKILL, .running = running, .detail = "signal 9"});
  }
  // Killed for an order that went on after its call.
  void LoseStopped(JobId running, std::uint64_t generation = 1) {
    scheduler_.OnWorkerLost(
        "cuda:0", generation,
        {.reason = "cancelled", .running = running, .detail = "killed: cancelled"});
  }
  Job Measured(const std::string& principal, absl::Duration limit = absl::Seconds(1)) {
    Job job = MakeJob(principal, limit);
    job.measure.emplace();
    return job;
  }
  Job Large(const std::string& principal) {
    Job job = MakeJob(principal, absl::Seconds(1));
    job.operand_bytes = Scheduler::kSmallBytes + 1;
    return job;
  }
  void TickAfter(absl::Duration time) {
    clock_.Advance(time);
    scheduler_.Tick();
  }
};

// ---- Time that others wait for. ----

TEST_F(SchedulerTimeTest, AMeasurementMakesRoomOnceAnotherPrincipalHasWaitedForItsTurn) {
  const auto worker = Ready();
  const Call long_one = Submit(Measured("ann", absl::Minutes(10)));
  worker->Run(long_one.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(1));
  const Call own = Submit("ann");
  TickAfter(absl::Minutes(1));
  EXPECT_THAT(worker->yields(), IsEmpty()) << "nobody else waits";
  const Call other = Submit("bob");
  TickAfter(absl::Milliseconds(5));
  EXPECT_THAT(worker->yields(), ElementsAre(long_one.id)) << "though ann's own is next";
  TickAfter(absl::Seconds(1));
  EXPECT_THAT(worker->yields(), ElementsAre(long_one.id)) << "said once";
  EXPECT_TRUE(Done(long_one.id));
  EXPECT_THAT(long_one.listener->status(), IsOk());
}

TEST_F(SchedulerTimeTest, InputsThatTakeLongAreMadeForAsLongAsNobodyElseWaits) {
  const auto worker = Ready();
  Job job = Large("ann");  // Its kernel may take a second.
  job.operand_bytes = 6'000'000'000;
  job.inputs.resize(1);
  job.inputs[0].source = SourceKind::kGenerate;
  job.outputs.resize(1);
  job.outputs[0].sink = SinkKind::kChecksum;
  const Call making = Submit(std::move(job));
  worker->Run(making.id, clock_.Now());
  TickAfter(absl::Seconds(4));
  const Call own = Submit("ann");
  TickAfter(absl::Seconds(40));
  EXPECT_EQ(making.listener->ends(), 0) << "nobody else waits";
  const Call other = Submit("bob");
  TickAfter(absl::Milliseconds(5));
  EXPECT_THAT(making.listener->status(), ReasonIs("WORK_TIME_LIMIT"));
  EXPECT_THAT(making.listener->status(),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("longer than 5s while")));
  EXPECT_EQ(other.listener->ends(), 0);
}

TEST_F(SchedulerTimeTest, InputsMayTakeLongerWhereTheKernelMay) {
  const auto worker = Ready();
  const Call making = Submit(MakeJob("ann", absl::Seconds(30)));
  worker->Run(making.id, clock_.Now());
  const Call other = Submit("bob");
  TickAfter(absl::Seconds(30));
  EXPECT_EQ(making.listener->ends(), 0);
}

TEST_F(SchedulerTimeTest, WhatHasBegunIsNotHeldAgainstTheTimeOfItsInputs) {
  const auto worker = Ready();
  const Call measured = Submit(Measured("ann", absl::Minutes(10)));
  const absl::Time start = clock_.Now();
  worker->Run(measured.id, start, start);
  TickAfter(absl::Milliseconds(5));
  worker->Run(measured.id, start);  // Between launches.
  const Call other = Submit("bob");
  TickAfter(absl::Minutes(11));
  EXPECT_EQ(measured.listener->ends(), 0);
}

TEST_F(SchedulerTimeTest, TheTurnOfAMeasurementBeginsWithItsFirstLaunch) {
  const auto worker = Ready();
  const Call measured = Submit(Measured("ann", absl::Minutes(10)));
  const Call other = Submit(Measured("bob", absl::Minutes(10)));
  EXPECT_THAT(worker->orders(), ElementsAre(measured.id)) << "none waits behind a measurement";
  worker->Run(measured.id, clock_.Now());
  TickAfter(absl::Seconds(30));
  EXPECT_THAT(worker->yields(), IsEmpty()) << "it is at its inputs";
  worker->Run(measured.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  worker->Run(measured.id, clock_.Now());  // Between launches it says of none.
  TickAfter(absl::Seconds(Limits().turn_seconds) - absl::Milliseconds(1));
  EXPECT_THAT(worker->yields(), IsEmpty());
  TickAfter(absl::Milliseconds(1));
  EXPECT_THAT(worker->yields(), ElementsAre(measured.id));
  EXPECT_TRUE(Done(measured.id));
  worker->Run(other.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(60));
  EXPECT_THAT(worker->yields(), ElementsAre(measured.id)) << "nobody waits behind it";
}

TEST_F(SchedulerTimeTest, WhoHasLeftWaitsForNobody) {
  const auto worker = Ready();
  const Call measured = Submit(Measured("ann", absl::Minutes(10)));
  const Call other = Submit("bob");
  worker->Run(measured.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  scheduler_.Cancel(other.id, absl::CancelledError("left"));
  TickAfter(absl::Seconds(60));
  EXPECT_THAT(worker->yields(), IsEmpty());
}

// ---- Time that is over. ----

TEST_F(SchedulerTimeTest, TheClientHearsAtOnceAndTheWorkerIsKilledOnceThatCostsOthersLess) {
  const auto worker = Ready();
  scheduler_.OnStartTook("cuda:0", absl::Seconds(3));
  const Call call = Submit("ann", absl::Seconds(1));
  worker->Run(call.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(1) + Scheduler::kGrace);
  EXPECT_THAT(call.listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_THAT(worker->cancels(), ElementsAre(call.id)) << "what it has not launched it need not";
  EXPECT_EQ(arena_.used(), kPage) << "the worker may still write there";
  TickAfter(absl::Milliseconds(2749));
  EXPECT_THAT(worker->kills(), IsEmpty());
  TickAfter(absl::Milliseconds(1));
  EXPECT_THAT(worker->kills(), ElementsAre("time_limit"));
  Lose(call.id);
  EXPECT_EQ(call.listener->ends(), 1);
  EXPECT_EQ(arena_.used(), 0u);
}

TEST_F(SchedulerTimeTest, WhatAJobHasLaunchedIsKnownWhileItRunsAndWhenItIsKilled) {
  const auto launched = [this] { return scheduler_.usage().at("cuda:0").launched_for; };
  const auto worker = Ready();
  const Call call = Submit("ann", absl::Minutes(10));
  const absl::Time begin = clock_.Now() + absl::Seconds(5);
  worker->Run(call.id, clock_.Now());
  TickAfter(absl::Seconds(5));
  EXPECT_EQ(launched(), absl::ZeroDuration()) << "its inputs are copied";
  worker->Run(call.id, clock_.Now(), begin);
  TickAfter(absl::Seconds(60));
  EXPECT_EQ(launched(), absl::Seconds(60));
  worker->Run(call.id, clock_.Now(), clock_.Now() + absl::Seconds(1));
  TickAfter(absl::Seconds(2));
  EXPECT_EQ(launched(), absl::Seconds(62)) << "from its first launch on";
  worker->Run(call.id, clock_.Now());
  TickAfter(absl::Seconds(7));
  EXPECT_EQ(launched(), absl::Seconds(62)) << "it is verified";
  Lose(call.id);
  EXPECT_EQ(launched(), absl::ZeroDuration());
  EXPECT_EQ(call.listener->end()->launched_for, absl::Seconds(62));
}

TEST_F(SchedulerTimeTest, AnOrderThatEndsByItselfBeforeThatCostsNoWorker) {
  const auto worker = Ready();
  scheduler_.OnStartTook("cuda:0", absl::Seconds(3));
  const Call late = Submit("ann", absl::Milliseconds(1));
  const Call behind = Submit("bob");
  worker->Run(late.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(1));
  EXPECT_THAT(late.listener->status(), ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_TRUE(Done(late.id));
  worker->Run(behind.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Milliseconds(500));
  EXPECT_THAT(worker->kills(), IsEmpty());
  EXPECT_TRUE(Done(behind.id));
  EXPECT_THAT(behind.listener->status(), IsOk());
  EXPECT_EQ(late.listener->ends(), 1);
}

TEST_F(SchedulerTimeTest, AnEndlessKernelIsKilledHoweverLongAStartTakes) {
  const auto worker = Ready();
  scheduler_.OnStartTook("cuda:0", absl::Minutes(1));
  const Call call = Submit("ann", absl::Seconds(1));
  worker->Run(call.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(1) + Scheduler::kLongestGrace);
  EXPECT_THAT(worker->kills(), ElementsAre("time_limit"));
}

TEST_F(SchedulerTimeTest, ADeadlineShorterThanALaunchCostsNoWorkerEither) {
  const auto worker = Ready();
  scheduler_.OnStartTook("cuda:0", absl::Seconds(3));
  Job job = MakeJob("ann", absl::Seconds(30));
  job.deadline = clock_.Now() + absl::Milliseconds(1);
  const Call call = Submit(std::move(job));
  worker->Run(call.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(1));
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kDeadlineExceeded, HasSubstr("ran")));
  EXPECT_THAT(worker->kills(), IsEmpty());
}

TEST_F(SchedulerTimeTest, AnOrderWhoseTimeIsOverIsNotSentAgain) {
  const auto worker = Ready();
  const Call call = Submit();
  worker->Run(call.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Seconds(2));
  Lose(/*running=*/0);  // It had ended when the kill came.
  EXPECT_THAT(Ready(2)->orders(), IsEmpty());
  EXPECT_EQ(call.listener->ends(), 1);
  EXPECT_TRUE(scheduler_.idle());
}

// ---- Calls that are over while their launch goes on. ----

TEST_F(SchedulerTimeTest, WhoLeavesKeepsTheDeviceNoLongerThanANewWorkerTakesWhereOthersWait) {
  const auto worker = Ready();
  scheduler_.OnStartTook("cuda:0", absl::Seconds(2));
  const Call left = Submit("ann", absl::Minutes(10));
  const Call behind = Submit("bob");
  worker->Run(left.id, clock_.Now(), clock_.Now());
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  TickAfter(Scheduler::kGrace - absl::Milliseconds(1));
  EXPECT_EQ(left.listener->ends(), 0);
  TickAfter(absl::Milliseconds(1));
  EXPECT_THAT(left.listener->status(), StatusIs(Code::kCancelled, "left"));
  TickAfter(absl::Seconds(2) - Scheduler::kGrace - absl::Milliseconds(1));
  EXPECT_THAT(worker->kills(), IsEmpty());
  TickAfter(absl::Milliseconds(1));
  EXPECT_THAT(worker->kills(), ElementsAre("cancelled"));

  LoseStopped(left.id);
  EXPECT_EQ(left.listener->ends(), 1);
  EXPECT_EQ(behind.listener->ends(), 0);
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(behind.id));
  EXPECT_TRUE(Done(behind.id, 2));
  EXPECT_THAT(behind.listener->status(), IsOk());
}

TEST_F(SchedulerTimeTest, WhereNobodyWaitsItMayRunOnUntilSomebodyDoes) {
  const auto worker = Ready();
  const Call left = Submit("ann", absl::Minutes(10));
  worker->Run(left.id, clock_.Now(), clock_.Now());
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  TickAfter(absl::Minutes(9));
  EXPECT_EQ(left.listener->ends(), 0);
  EXPECT_THAT(worker->kills(), IsEmpty());
  const Call uploading = SchedulerFixture::Submit(MakeJob("bob", absl::Seconds(1)));
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), IsEmpty()) << "its inputs are on their way";
  scheduler_.Start(uploading.id);
  scheduler_.Tick();
  EXPECT_THAT(worker->kills(), ElementsAre("cancelled"));
}

TEST_F(SchedulerTimeTest, OnesThatWereCancelledTooWaitForNothing) {
  const auto worker = Ready();
  const Call left = Submit("ann", absl::Minutes(10));
  const Call behind = Submit("ann", absl::Minutes(10));
  worker->Run(left.id, clock_.Now(), clock_.Now());
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  scheduler_.Cancel(behind.id, absl::CancelledError("left"));
  TickAfter(Scheduler::kLongestGrace);
  EXPECT_THAT(worker->kills(), IsEmpty());
}

TEST_F(SchedulerTimeTest, OneThatStopsByItselfInTimeCostsNoWorker) {
  const auto worker = Ready();
  const Call left = Submit("ann", absl::Minutes(10));
  const Call behind = Submit("bob");
  worker->Run(left.id, clock_.Now(), clock_.Now());
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  TickAfter(Scheduler::kGrace - absl::Milliseconds(1));
  EXPECT_TRUE(scheduler_.OnDone(left.id, 1, {absl::CancelledError("between launches"), {}}));
  worker->Run(behind.id, clock_.Now(), clock_.Now());
  TickAfter(absl::Milliseconds(500));
  EXPECT_THAT(worker->kills(), IsEmpty());
  EXPECT_THAT(left.listener->status(), StatusIs(Code::kCancelled, "left"));
}

// The kill and the end of the order that it was for may cross.
TEST_F(SchedulerTimeTest, WhatBeganWhileItsWorkerWasKilledForAnotherRunsAgain) {
  Ready();
  const Call left = Submit("ann", absl::Minutes(10));
  const Call behind = Submit("bob");
  Job in_place = MakeJob("bob", absl::Seconds(1));
  in_place.inputs.resize(1);
  in_place.outputs.resize(1);
  in_place.outputs[0].in_place_of = 0;
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  LoseStopped(behind.id);
  EXPECT_THAT(left.listener->status(), StatusIs(Code::kCancelled, "left"));
  EXPECT_EQ(behind.listener->ends(), 0);
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(behind.id));
  const Call overwrites = Submit(std::move(in_place));
  LoseStopped(overwrites.id, 2);
  EXPECT_THAT(overwrites.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_EQ(behind.listener->ends(), 0);
}

TEST_F(SchedulerTimeTest, WhoCostAWorkerLetsFourTurnsOfOthersGoFirst) {
  const auto worker = Ready();
  const Call left = Submit("ann", absl::Minutes(10));
  std::vector<JobId> expected;
  for (int i = 0; i < 2; ++i) Submit(Large("ann"));
  for (int i = 0; i <= Scheduler::kCharge; ++i) expected.push_back(Submit(Large("bob")).id);
  worker->Run(left.id, clock_.Now(), clock_.Now());
  scheduler_.Cancel(left.id, absl::CancelledError("left"));
  TickAfter(Scheduler::kGrace);
  EXPECT_THAT(worker->kills(), ElementsAre("cancelled"));
  LoseStopped(left.id);
  const auto next = Ready(2);
  std::vector<JobId> ran;
  for (int i = 0; i < Scheduler::kCharge; ++i) {
    ran.push_back(next->orders().at(i));
    EXPECT_TRUE(Done(ran.back(), 2));
  }
  EXPECT_THAT(ran, ElementsAreArray(expected.begin(), expected.begin() + Scheduler::kCharge));
}

// Of a client with many calls, each of which costs a worker.
class SchedulerCulpritTest : public SchedulerTimeTest {
 protected:
  SchedulerCulpritTest() {
    worker_ = Ready();
    for (int i = 0; i < 20; ++i) anns_.push_back(Submit("ann").id);
    bob_ = Submit("bob").id;
  }
  void Lose(WorkerLoss loss, std::uint64_t generation = 1) {
    scheduler_.OnWorkerLost("cuda:0", generation, loss);
  }
  void ExpectThatBobIsNext(std::uint64_t generation = 2) {
    EXPECT_EQ(Ready(generation)->orders().front(), bob_);
  }

  std::shared_ptr<FakeWorker> worker_;
  std::vector<JobId> anns_;
  JobId bob_ = 0;
};

TEST_F(SchedulerCulpritTest, OthersGoFirstAfterOneThatRanTooLong) {
  Lose({.reason = "time_limit", .running = anns_.front(), .detail = "killed: time_limit"});
  ExpectThatBobIsNext();
}

TEST_F(SchedulerCulpritTest, AndAfterOneThatCrashed) {
  Lose({.reason = "signal", .signal = SIGSEGV, .running = anns_.front(), .detail = "signal 11"});
  ExpectThatBobIsNext();
}

TEST_F(SchedulerCulpritTest, AndAfterOneWhoseAnswerSpoiledTheWorker) {
  Scheduler::WorkerAnswer full{
      .id = anns_.front(),
      .result = {.status = absl::ResourceExhaustedError("no memory"), .outcome = std::nullopt},
      .spoiled = true};
  EXPECT_THAT(scheduler_.OnDone(1, {&full, 1}), IsEmpty());
  Lose({.reason = "exit", .detail = "exit code 3", .spoiled = true});
  ExpectThatBobIsNext();
}

TEST_F(SchedulerCulpritTest, AndAfterOneThatIsSuspected) {
  Lose({.reason = "signal", .signal = SIGSEGV, .running = 0, .detail = "signal 11"});
  ExpectThatBobIsNext();
}

// It had begun another order when it was killed for the one before.
TEST_F(SchedulerCulpritTest, AndAfterOneThatEndedJustBeforeTheKillForIt) {
  worker_->Run(anns_[0], clock_.Now(), clock_.Now());
  scheduler_.Cancel(anns_[0], absl::CancelledError("left"));
  TickAfter(Scheduler::kGrace);
  EXPECT_THAT(worker_->kills(), ElementsAre("cancelled"));
  EXPECT_TRUE(Done(anns_[0]));
  Lose({.reason = "cancelled", .running = anns_[1], .detail = "killed: cancelled"});
  ExpectThatBobIsNext();
}

TEST_F(SchedulerCulpritTest, NobodyLosesItsPlaceByAKillFromOutside) {
  Lose({.reason = "signal", .signal = SIGKILL, .running = anns_.front(), .detail = "signal 9"});
  EXPECT_EQ(Ready(2)->orders().front(), anns_[1]);
}

TEST_F(SchedulerTimeTest, AWorkerThatRunsWhatItDoesNotHoldHangs) {
  const auto worker = Ready();
  Submit();
  worker->Run(4711, clock_.Now());
  for (int i = 0; i < 6; ++i) TickAfter(absl::Seconds(1));
  EXPECT_THAT(worker->kills(), ElementsAre("hang"));
}

// ---- A worker that cannot be ended. ----

TEST_F(SchedulerTimeTest, NobodyWaitsForAWorkerThatCannotBeEnded) {
  Ready();
  const Call running = Submit(), cancelled = Submit();
  Job large = MakeJob("bob", absl::Seconds(1));
  large.measure.emplace();
  const Call queued = Submit(std::move(large));
  scheduler_.Cancel(cancelled.id, absl::CancelledError("by the client"));
  scheduler_.OnKillFailed("cuda:0", {.reason = "hang", .detail = "still there"},
                          absl::UnavailableError("cannot be ended"));

  EXPECT_THAT(running.listener->status(), StatusIs(Code::kUnavailable, HasSubstr("still there")));
  EXPECT_THAT(running.listener->status(), ReasonIs("WORKER_CRASHED"));
  EXPECT_GT(DetailsOf(running.listener->status()).retry_after, absl::ZeroDuration());
  EXPECT_THAT(cancelled.listener->status(), StatusIs(Code::kCancelled, _));
  EXPECT_THAT(queued.listener->status(), StatusIs(Code::kUnavailable, "cannot be ended"));
  const auto late = std::make_shared<FakeListener>();
  EXPECT_THAT(scheduler_.Submit(MakeJob("bob", absl::Seconds(1)), late, false),
              StatusIs(Code::kUnavailable, "cannot be ended"));
}

TEST_F(SchedulerTimeTest, ItKeepsTheMemoryOfItsOrdersUntilItIsGone) {
  Ready();
  const Call running = Submit();
  scheduler_.OnKillFailed("cuda:0", {.reason = "hang", .detail = ""},
                          absl::UnavailableError("down"));
  EXPECT_EQ(arena_.used(), kPage);
  Lose(running.id);
  EXPECT_EQ(arena_.used(), 0u);
  EXPECT_EQ(running.listener->ends(), 1);
  const auto next = Ready(2);
  const Call call = Submit();
  EXPECT_THAT(next->orders(), ElementsAre(call.id));
}

TEST_F(SchedulerTimeTest, AtTheEndOfTheServerItsCallsHearOfThat) {
  Ready();
  const Call running = Submit();
  scheduler_.OnKillFailed("cuda:0", {.reason = "exit", .detail = "", .planned = true},
                          DrainingStatus());
  EXPECT_THAT(running.listener->status(), ReasonIs("DRAINING"));
}

TEST_F(SchedulerTimeTest, AWorkerThatWasNeverReadyMayBeOneToo) {
  const Call waiting = Submit();
  scheduler_.OnKillFailed("cuda:0", {.reason = "hang", .detail = ""},
                          absl::UnavailableError("down"));
  EXPECT_THAT(waiting.listener->status(), StatusIs(Code::kUnavailable, "down"));
}

// ---- Back from a worker. ----

TEST_F(SchedulerTimeTest, WhatAWorkerGaveBackHasItsWholeTimeAtItsNextTurn) {
  const auto worker = Ready();
  const Call slow = Submit("ann", absl::Seconds(30)), second = Submit("ann", absl::Seconds(1));
  const Call other = Submit("bob", absl::Seconds(30));
  TickAfter(absl::Milliseconds(11));
  ASSERT_THAT(worker->cancels(), ElementsAre(second.id));
  worker->Run(second.id, clock_.Now());
  TickAfter(absl::Milliseconds(1));
  EXPECT_TRUE(scheduler_.OnDone(second.id, 1, {absl::CancelledError("before the launch"), {}}));
  EXPECT_TRUE(Done(slow.id));
  ASSERT_THAT(worker->orders(), ElementsAre(slow.id, second.id, other.id, second.id));
  worker->Run(other.id, clock_.Now());
  TickAfter(absl::Seconds(3));
  EXPECT_TRUE(Done(other.id));
  worker->Run(second.id, clock_.Now());
  TickAfter(absl::Milliseconds(100));
  EXPECT_THAT(worker->kills(), IsEmpty());
  EXPECT_EQ(second.listener->ends(), 0);
}

TEST_F(SchedulerTimeTest, WhatComesBackAfterAMinuteMayWaitInTheQueueAgain) {
  Ready();
  const Call running = Submit("ann", absl::Minutes(5)), behind = Submit();
  clock_.Advance(absl::Seconds(61));
  Lose(running.id);
  scheduler_.Tick();
  EXPECT_EQ(behind.listener->ends(), 0);
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(behind.id));
}

TEST_F(SchedulerTimeTest, TheWaitOfACallIsUntilItWasFirstSent) {
  Ready();
  const Call running = Submit(), behind = Submit();
  clock_.Advance(absl::Seconds(1));
  Lose(running.id);
  EXPECT_THAT(Ready(2)->orders(), ElementsAre(behind.id));
  EXPECT_TRUE(Done(behind.id, 2));
  EXPECT_EQ(behind.listener->end()->waited, absl::ZeroDuration());
}

TEST_F(SchedulerTimeTest, ACallThatWasNeverSentHasNoWait) {
  const Call call = Submit();
  scheduler_.Cancel(call.id, absl::CancelledError(""));
  ASSERT_EQ(call.listener->ends(), 1);
  EXPECT_EQ(call.listener->end()->waited, std::nullopt);
}

}  // namespace
}  // namespace gridclock
