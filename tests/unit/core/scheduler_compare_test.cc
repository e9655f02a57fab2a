// Launches that are checked: a guest runs them, another one may run what they are held against, and
// the catalogue's worker compares.
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

Job Checked(Job job) {
  job.verify = true;
  job.check.emplace();
  job.check->done->violations = 2;
  job.check->done->first_violation = "input 'x' was changed";
  return job;
}

TEST_F(SchedulerLanesTest, TheCataloguesWorkerComparesWhatAGuestGave) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call call = SubmitReady(Checked(Submitted()));
  EXPECT_THAT(guest->orders(), ElementsAre(call.id));
  Outcome ran;
  ran.peak_device_bytes = 77;
  EXPECT_TRUE(scheduler_.OnDone(call.id, 100, {.status = absl::OkStatus(), .outcome = ran}));
  EXPECT_FALSE(call.listener->end().has_value());
  EXPECT_THAT(worker->orders(), ElementsAre(call.id));

  Outcome compared;
  compared.verification.emplace();
  compared.verification->mismatches = 1;
  EXPECT_TRUE(scheduler_.OnDone(call.id, 1, {.status = absl::OkStatus(), .outcome = compared}));
  ASSERT_THAT(call.listener->status(), IsOk());
  const Outcome outcome = *call.listener->end()->outcome;
  EXPECT_EQ(outcome.peak_device_bytes, 77U);
  EXPECT_EQ(outcome.verification->mismatches, 1);
  EXPECT_EQ(outcome.verification->violations, 2);
  EXPECT_EQ(outcome.verification->first_violation, "input 'x' was changed");
}

TEST_F(SchedulerLanesTest, TheTimeOfOneLaunchOnInputsThatWereSentIsNotVouchedForEither) {
  Ready();
  GuestReady();
  for (const bool measures : {false, true}) {
    for (const int fresh : {0, 1}) {
      const Call call = SubmitReady(Checked(measures ? Measured(Submitted()) : Submitted()));
      EXPECT_TRUE(GuestDone(call.id));
      Outcome compared;
      compared.verification.emplace();
      compared.verification->checked = 10;
      compared.verification->fresh_launches = fresh;
      EXPECT_TRUE(scheduler_.OnDone(call.id, 1, {.status = absl::OkStatus(), .outcome = compared}));
      ASSERT_THAT(call.listener->status(), IsOk());
      const std::vector<Flag> flags = call.listener->end()->outcome->flags;
      EXPECT_EQ(std::count(flags.begin(), flags.end(), Flag::kUnverified), fresh == 0 ? 1 : 0)
          << measures;
    }
  }
}

TEST_F(SchedulerLanesTest, WhatACheckedJobLaunchedIsKnownUntilItEnds) {
  const auto launched = [this] { return scheduler_.usage().at("cpu").launched_for; };
  const auto tick = [this](absl::Duration time) {
    clock_.Advance(time);
    scheduler_.Tick();
  };
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call call = SubmitReady(Checked(Submitted()));
  guest->Run(call.id, clock_.Now(), clock_.Now());
  tick(absl::Seconds(10));
  EXPECT_EQ(launched(), absl::Seconds(10));
  EXPECT_TRUE(GuestDone(call.id));
  EXPECT_EQ(launched(), absl::Seconds(10)) << "it waits to be compared";
  tick(absl::Seconds(5));
  EXPECT_EQ(launched(), absl::Seconds(10));
  worker->Run(call.id, clock_.Now(), clock_.Now());
  tick(absl::Seconds(2));
  EXPECT_EQ(launched(), absl::Seconds(12)) << "it is compared";
  Outcome compared;
  compared.verification.emplace();
  EXPECT_TRUE(scheduler_.OnDone(call.id, 1, {.status = absl::OkStatus(), .outcome = compared}));
  EXPECT_EQ(launched(), absl::ZeroDuration());
  EXPECT_EQ(call.listener->end()->launched_for, absl::Seconds(12));
}

// The guest that runs it runs nothing else, of the same principal neither.
TEST_F(SchedulerLanesTest, AProgramThatIsTheReferenceRunsInAGuestOfItsOwn) {
  const auto worker = Ready();
  const auto guest = GuestReady(100);
  Job job = Checked(Submitted());
  job.check->program = job.program;
  const Call call = SubmitReady(std::move(job));
  const Call next = SubmitReady(Submitted());
  EXPECT_TRUE(GuestDone(call.id));
  EXPECT_TRUE(GuestDone(next.id));
  EXPECT_THAT(guest->orders(), ElementsAre(call.id, next.id));
  EXPECT_THAT(worker->orders(), IsEmpty());
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  LoseGuest(Retired());
  const auto second = GuestReady(101);
  EXPECT_THAT(second->orders(), ElementsAre(call.id));
  const Call last = SubmitReady(Submitted());
  EXPECT_TRUE(GuestDone(call.id, 101));
  EXPECT_THAT(second->orders(), ElementsAre(call.id));
  EXPECT_THAT(second->kills(), ElementsAre("retired"));
  EXPECT_THAT(worker->orders(), ElementsAre(call.id));
  Outcome compared;
  compared.verification.emplace();
  EXPECT_TRUE(scheduler_.OnDone(call.id, 1, {.status = absl::OkStatus(), .outcome = compared}));
  EXPECT_THAT(call.listener->status(), IsOk());
  LoseGuest(Retired(), 101);
  EXPECT_THAT(GuestReady(102)->orders(), ElementsAre(last.id));
}

class SchedulerFewCallsTest : public SchedulerLanesTest {
 protected:
  static Limits FewCalls() {
    Limits limits;
    limits.queue = 6;
    limits.client_queue = 4;
    return limits;
  }
  SchedulerFewCallsTest() : SchedulerLanesTest(FewCalls()) {}

  absl::Status Refusal(Job job) {
    return scheduler_.Submit(std::move(job), std::make_shared<FakeListener>(), false).status();
  }
  Job AgainstAProgram(const std::string& principal) const {
    Job job = Checked(Submitted(principal));
    job.check->program = job.program;
    return job;
  }
};

TEST_F(SchedulerFewCallsTest, WhatWaitsForItsReferenceCountsAgainstItsClient) {
  Ready();
  GuestReady();
  std::vector<Call> calls;
  calls.reserve(4);
  for (int i = 0; i < 4; ++i) calls.push_back(SubmitReady(AgainstAProgram("ann")));
  for (const Call& call : calls) EXPECT_TRUE(GuestDone(call.id));
  EXPECT_EQ(scheduler_.usage()["cpu"].queued_of_one, 4);
  const absl::Status refused = Refusal(AgainstAProgram("ann"));
  EXPECT_THAT(refused, ReasonIs("QUEUE_FULL"));
  EXPECT_EQ(DetailsOf(refused).metadata.at("limit"), "client_queue");
  Submit(Submitted("bob"));
  Submit(MakeJob("ann"));
}

TEST_F(SchedulerFewCallsTest, WhatIsComparedCountsWhereItCameFrom) {
  const auto worker = Ready();
  GuestReady();
  const Call first = SubmitReady(Checked(Submitted("ann")));
  for (int i = 0; i < 4; ++i) SubmitReady(Checked(Submitted("ann")));
  EXPECT_TRUE(GuestDone(first.id));
  // The second one runs: nothing is compared beside it.
  EXPECT_THAT(worker->orders(), IsEmpty());
  EXPECT_EQ(scheduler_.usage()["cpu"].queued, 4);
  EXPECT_EQ(scheduler_.usage()["cpu"].queued_of_one, 4);
  EXPECT_THAT(Refusal(Submitted("ann")), ReasonIs("QUEUE_FULL"));
  for (int i = 0; i < 4; ++i) Submit(MakeJob("ann"));
  EXPECT_THAT(Refusal(MakeJob("ann")), ReasonIs("QUEUE_FULL"));
  for (int i = 0; i < 2; ++i) Submit(MakeJob("bob"));
  EXPECT_EQ(DetailsOf(Refusal(MakeJob("bob"))).metadata.at("limit"), "queue");
}

TEST_F(SchedulerFewCallsTest, EachLaneHasAQueueAndTheFullerOneIsToldOf) {
  Ready();
  GuestReady();
  for (int i = 0; i < 4; ++i) SubmitReady(Submitted("ann"));
  for (int i = 0; i < 3; ++i) SubmitReady(MakeJob("ann"));
  const Scheduler::Usage usage = scheduler_.usage()["cpu"];
  EXPECT_EQ(usage.fuller_queue, 3);
  EXPECT_EQ(usage.queued, 6);
}

TEST_F(SchedulerFewCallsTest, WhatWasComparedCountsNoMore) {
  Ready();
  GuestReady();
  for (int i = 0; i < 6; ++i) {
    const Call call = SubmitReady(Checked(Submitted("ann")));
    EXPECT_TRUE(GuestDone(call.id));
    Outcome compared;
    compared.verification.emplace();
    EXPECT_TRUE(scheduler_.OnDone(call.id, 1, {.status = absl::OkStatus(), .outcome = compared}));
    EXPECT_THAT(call.listener->status(), IsOk());
  }
  EXPECT_EQ(scheduler_.usage()["cpu"].queued, 0);
  const Call cancelled = SubmitReady(Checked(Submitted("ann")));
  const Call running = SubmitReady(Submitted("ann"));
  EXPECT_TRUE(GuestDone(cancelled.id));
  scheduler_.Cancel(cancelled.id, absl::CancelledError(""));
  EXPECT_EQ(scheduler_.usage()["cpu"].queued, 0);
}

TEST_F(SchedulerLanesTest, AReferenceWaitsForItsClientsTurn) {
  Ready();
  GuestReady();
  Job job = Checked(Submitted("ann"));
  job.check->program = job.program;
  const Call checked = SubmitReady(std::move(job));
  const Call second = SubmitReady(Submitted("ann"));
  const Call other = SubmitReady(Submitted("bob"));
  EXPECT_TRUE(GuestDone(checked.id));
  EXPECT_TRUE(GuestDone(second.id));
  LoseGuest(Retired());
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(other.id));
}

// Who cost the others a guest waits with its references too.
TEST_F(SchedulerLanesTest, AReferenceOfWhoIsChargedWaitsForOthers) {
  Ready();
  GuestReady();
  Job job = Checked(Submitted("ann"));
  job.check->program = job.program;
  const Call checked = SubmitReady(std::move(job));
  const Call bad = SubmitReady(Submitted("ann"));
  EXPECT_TRUE(GuestDone(checked.id));
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = bad.id, .detail = "signal 11"});
  std::vector<Call> others;
  others.reserve(3);
  for (int i = 0; i < 3; ++i) others.push_back(SubmitReady(Large(Submitted("bob"))));
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(others[0].id, others[1].id));
  clock_.Advance(Scheduler::kStay);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(GuestDone(others[i].id, 101));
  LoseGuest(Retired(), 101);
  EXPECT_THAT(GuestReady(102)->orders(), ElementsAre(others[2].id));
}

// The fleet writes it while the first run ends, and the scheduler knows it from the answer alone.
TEST_F(SchedulerLanesTest, AReferenceThatIsBeingPreparedIsNotLookedAt) {
  Ready();
  const auto guest = GuestReady();
  Job job = Checked(Submitted());
  job.check->program = job.program;
  Job reference = job;
  reference.kernel = "reference";
  reference.check.reset();
  job.check->done->reference = std::make_shared<const Job>(reference);
  job.kernel_time_limit = absl::Seconds(1);
  const Call late = SubmitReady(job);
  guest->Run(late.id, clock_.Now(), clock_.Now());
  scheduler_.Tick();
  clock_.Advance(absl::Seconds(1) + Scheduler::kGrace);
  scheduler_.Tick();
  EXPECT_THAT(late.listener->status(),
              StatusIs(Code::kDeadlineExceeded, HasSubstr("kernel 'mine' ran longer")));
  LoseGuest({.reason = "time_limit", .running = late.id, .detail = "killed: time_limit"});

  GuestReady(101);
  const Call lost = SubmitReady(job);
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = lost.id, .detail = "signal 11"},
            101);
  EXPECT_THAT(
      lost.listener->status(),
      StatusIs(Code::kFailedPrecondition, HasSubstr("the submitted kernel ended its worker")));
  EXPECT_THAT(guests_.blamed_kernels(), ElementsAre("mine", "mine"));
}

TEST_F(SchedulerLanesTest, AReferenceThatEndsItsGuestIsWhatIsBlamed) {
  Ready();
  GuestReady();
  Job job = Checked(Submitted());
  job.check->program = job.program;
  Job reference = job;
  reference.kernel = "reference";
  reference.check.reset();
  const auto done = job.check->done;
  const Call call = SubmitReady(std::move(job));
  done->reference = std::make_shared<const Job>(reference);
  EXPECT_TRUE(GuestDone(call.id));
  LoseGuest(Retired());
  GuestReady(101);
  LoseGuest({.reason = "signal", .signal = SIGSEGV, .running = call.id, .detail = "signal 11"},
            101);
  EXPECT_THAT(guests_.blamed_kernels(), ElementsAre("reference"));
}

TEST_F(SchedulerLanesTest, WhatAGuestFailedAtIsNotCompared) {
  const auto worker = Ready();
  GuestReady();
  const Call call = SubmitReady(Checked(Submitted()));
  EXPECT_TRUE(scheduler_.OnDone(
      call.id, 100, {.status = absl::FailedPreconditionError("fault"), .outcome = std::nullopt}));
  EXPECT_THAT(worker->orders(), IsEmpty());
  EXPECT_THAT(call.listener->status(), StatusIs(Code::kFailedPrecondition, HasSubstr("fault")));
}

TEST_F(SchedulerLanesTest, AComparisonThatItsWorkerDidNotBeginIsMadeByTheNext) {
  const auto worker = Ready();
  GuestReady();
  const Call call = SubmitReady(Checked(Submitted()));
  EXPECT_TRUE(GuestDone(call.id));
  EXPECT_THAT(worker->orders(), ElementsAre(call.id));
  scheduler_.OnWorkerLost("cpu", 1, {.reason = "signal", .signal = SIGKILL, .detail = "signal 9"});
  EXPECT_FALSE(call.listener->end().has_value());
  const auto next = Ready(2);
  EXPECT_THAT(next->orders(), ElementsAre(call.id));
  Outcome compared;
  compared.verification.emplace();
  EXPECT_TRUE(scheduler_.OnDone(call.id, 2, {.status = absl::OkStatus(), .outcome = compared}));
  EXPECT_THAT(call.listener->status(), IsOk());
}

}  // namespace
}  // namespace gridclock
