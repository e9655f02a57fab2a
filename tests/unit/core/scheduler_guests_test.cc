// When the guest of a device starts, whose jobs it runs, and when it ends.
#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;

TEST_F(SchedulerLanesTest, AGuestIsStartedOnceTheCatalogueIsThere) {
  EXPECT_EQ(guests_.starts(), 0);
  Ready();
  EXPECT_EQ(guests_.starts(), 1);
  SubmitReady(Submitted());
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
}

TEST_F(SchedulerLanesTest, OneThatDidNotStartIsAskedForAgainNotBeforeItsTime) {
  Ready();
  scheduler_.OnGuestNotReady(kLane, clock_.Now() + absl::Seconds(1));
  SubmitReady(Submitted());
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
  clock_.Advance(absl::Seconds(1));
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 2);
}

TEST_F(SchedulerLanesTest, NoGuestStartsBesideAMeasurementAndNoneIsMeasuredBesideAStart) {
  const auto worker = Ready();
  const Call measured = SubmitReady(Measured(MakeJob()));
  EXPECT_THAT(worker->orders(), IsEmpty());  // The first guest starts.
  scheduler_.OnGuestNotReady(kLane, clock_.Now() + absl::Seconds(1));
  EXPECT_THAT(worker->orders(), ElementsAre(measured.id));

  clock_.Advance(absl::Seconds(1));
  SubmitReady(Submitted());
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
  const Call next = SubmitReady(Measured(MakeJob()));
  EXPECT_THAT(worker->orders(), SizeIs(1));  // It would keep the guest from starting.
  EXPECT_TRUE(Done(measured.id));
  EXPECT_EQ(guests_.starts(), 2);
  EXPECT_THAT(worker->orders(), SizeIs(1));
  const auto guest = GuestReady();
  EXPECT_EQ(guest->orders().size() + worker->orders().size(), 2U);
}

TEST_F(SchedulerLanesTest, WhatIsNotMeasuredRunsBesideAStart) {
  const auto worker = Ready();
  EXPECT_EQ(guests_.starts(), 1);
  SubmitReady(MakeJob());
  SubmitReady(Large(MakeJob()));
  EXPECT_THAT(worker->orders(), SizeIs(2));
}

TEST_F(SchedulerLanesTest, AnotherPrincipalsJobWaitsForAnotherGuest) {
  Ready();
  const auto guest = GuestReady();
  const Call ann = SubmitReady(Submitted("ann"));
  const Call bob = SubmitReady(Submitted("bob"));
  EXPECT_THAT(guest->orders(), ElementsAre(ann.id));
  EXPECT_THAT(guest->kills(), IsEmpty());
  EXPECT_TRUE(GuestDone(ann.id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  EXPECT_THAT(guest->orders(), SizeIs(1));
  LoseGuest(Retired());
  EXPECT_EQ(guests_.starts(), 2);
  EXPECT_THAT(guests_.blamed(), IsEmpty());
  EXPECT_EQ(observer_.count("lost"), 0);
  EXPECT_EQ(observer_.count("guest lost retired"), 1);
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(bob.id));
}

TEST_F(SchedulerLanesTest, AGuestStaysASecondWithWhoHasMore) {
  Ready();
  const auto guest = GuestReady();
  std::vector<Call> ann;
  ann.reserve(4);
  for (int i = 0; i < 4; ++i) ann.push_back(SubmitReady(Large(Submitted("ann"))));
  SubmitReady(Large(Submitted("bob")));
  EXPECT_TRUE(GuestDone(ann[0].id));
  EXPECT_THAT(guest->orders(), SizeIs(3));
  clock_.Advance(Scheduler::kStay);
  EXPECT_TRUE(GuestDone(ann[1].id));
  EXPECT_THAT(guest->orders(), SizeIs(3));
  EXPECT_THAT(guest->kills(), IsEmpty());
  EXPECT_TRUE(GuestDone(ann[2].id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
}

TEST_F(SchedulerLanesTest, NoGuestIsEndedBesideAMeasurement) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call ann = SubmitReady(Submitted("ann"));
  EXPECT_TRUE(GuestDone(ann.id));
  const Call measured = SubmitReady(Measured(MakeJob()));
  SubmitReady(Submitted("bob"));
  EXPECT_THAT(worker->orders(), ElementsAre(measured.id));
  EXPECT_THAT(guest->kills(), IsEmpty());
  const Call next = SubmitReady(Measured(MakeJob()));
  EXPECT_TRUE(Done(measured.id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  EXPECT_THAT(worker->orders(), SizeIs(1));
}

TEST_F(SchedulerLanesTest, AnIdleGuestEndsAndIsNotStartedWithoutNeed) {
  Ready();
  const auto guest = GuestReady();
  const Call ann = SubmitReady(Submitted());
  EXPECT_TRUE(GuestDone(ann.id));
  clock_.Advance(absl::Seconds(59));
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  LoseGuest(Retired());
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
  SubmitReady(Submitted());
  EXPECT_EQ(guests_.starts(), 2);
}

// ---- Faults. ----

TEST_F(SchedulerLanesTest, AGuestInQuarantineIsTriedBetweenMeasurementsOnly) {
  const auto worker = Ready();
  scheduler_.OnDeviceDown(kLane, absl::UnavailableError("ends again and again"));
  scheduler_.OnGuestNotReady(kLane, clock_.Now() + absl::Seconds(30));
  const Call first = SubmitReady(Measured(MakeJob()));
  EXPECT_THAT(worker->orders(), ElementsAre(first.id));

  clock_.Advance(absl::Seconds(30));
  const Call second = SubmitReady(Measured(MakeJob()));
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
  EXPECT_THAT(worker->orders(), SizeIs(1));  // Without end they would keep it from being tried.
  EXPECT_TRUE(Done(first.id));
  EXPECT_EQ(guests_.starts(), 2);
  EXPECT_THAT(worker->orders(), SizeIs(1));
  scheduler_.OnGuestNotReady(kLane, clock_.Now() + absl::Seconds(30));
  EXPECT_THAT(worker->orders(), ElementsAre(first.id, second.id));
}

TEST_F(SchedulerLanesTest, NoProgramIsMeasuredBesideTheTrialsOfACatalogueInQuarantine) {
  Ready();
  const auto guest = GuestReady();
  scheduler_.OnWorkerLost("cpu", 1, {.reason = "exit", .detail = "exit code 1"});
  const Call waits = SubmitReady(Measured(Submitted()));
  EXPECT_THAT(guest->orders(), IsEmpty());
  scheduler_.OnDeviceDown("cpu", absl::UnavailableError("ends again and again"));

  EXPECT_THAT(waits.listener->status(), StatusIs(Code::kUnavailable, "ends again and again"));
  EXPECT_THAT(scheduler_.Submit(Measured(Submitted()), std::make_shared<FakeListener>(), false),
              StatusIs(Code::kUnavailable, "ends again and again"));
  const Call plain = SubmitReady(Submitted());
  EXPECT_THAT(guest->orders(), ElementsAre(plain.id));
}

TEST_F(SchedulerLanesTest, AnotherGuestComesOnceOneThatCouldNotBeEndedIsGone) {
  Ready();
  GuestReady();
  const Call call = SubmitReady(Submitted());
  const WorkerLoss loss = {.reason = "time_limit", .running = call.id, .detail = "still there"};
  scheduler_.OnKillFailed(kLane, loss, absl::UnavailableError("cannot be ended"));
  scheduler_.Tick();
  EXPECT_EQ(guests_.starts(), 1);
  LoseGuest(loss);
  EXPECT_EQ(guests_.starts(), 2);
  const auto next = GuestReady(101);
  EXPECT_THAT(next->orders(), ElementsAre(SubmitReady(Submitted()).id));
}

TEST_F(SchedulerLanesTest, AWornGuestIsReplacedBetweenTwoJobs) {
  Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Submitted());
  guest->WearOut();
  const Call second = SubmitReady(Large(Submitted()));
  EXPECT_THAT(guest->orders(), ElementsAre(first.id));
  EXPECT_TRUE(GuestDone(first.id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  LoseGuest(Retired());
  EXPECT_THAT(GuestReady(101)->orders(), ElementsAre(second.id));
}

// What it holds of the device's memory would be lacking for the catalogue.
TEST_F(SchedulerLanesTest, AWornGuestThatNobodyWaitsForEndsTooOnceItsJobHas) {
  Ready();
  const auto guest = GuestReady();
  const Call only = SubmitReady(Submitted());
  guest->WearOut();
  scheduler_.Tick();
  EXPECT_THAT(guest->kills(), IsEmpty());
  EXPECT_TRUE(GuestDone(only.id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  EXPECT_THAT(only.listener->status(), IsOk());
}

TEST_F(SchedulerLanesTest, MeasurementsWaitUntilAWornGuestIsGone) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call mine = SubmitReady(Submitted());
  guest->WearOut();
  const Call first = SubmitReady(Measured(MakeJob()));
  const Call second = SubmitReady(Measured(MakeJob()));
  EXPECT_TRUE(GuestDone(mine.id));
  EXPECT_THAT(guest->kills(), ElementsAre("retired"));
  EXPECT_THAT(worker->orders(), IsEmpty());
  LoseGuest(Retired());
  EXPECT_THAT(worker->orders(), ElementsAre(first.id));
  EXPECT_TRUE(Done(first.id));
  EXPECT_THAT(worker->orders(), ElementsAre(first.id, second.id));
}

}  // namespace
}  // namespace gridclock
