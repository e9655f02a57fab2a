// Launches that are checked: a guest runs them, another one may run what they are held against, and
// the catalogue's worker compares.
#include <csignal>
#include <string>

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
