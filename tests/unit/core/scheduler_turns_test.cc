// Of the two lanes of a device that both wait, each gets its share of the device's time.
#include <string>
#include <vector>

#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// A client whose calls take seconds beside one whose calls take milliseconds.
TEST_F(SchedulerLanesTest, WhoUsedLongLetsTheOtherCatchUp) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Large(Submitted()));
  const Call next = SubmitReady(Measured(Submitted()));
  std::vector<Call> squares;
  for (int i = 0; i < 6; ++i) squares.push_back(SubmitReady(Large(MakeJob())));
  ASSERT_THAT(guest->orders(), ElementsAre(first.id, next.id));
  clock_.Advance(absl::Seconds(2));
  EXPECT_TRUE(GuestDone(first.id));
  const Call last = SubmitReady(Large(Submitted()));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(GuestDone(next.id));
  // Of its three seconds: one after the other, and the one that was sent meanwhile.
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(guest->orders(), SizeIs(2));
    clock_.Advance(absl::Seconds(1));
    EXPECT_TRUE(Done(squares[i].id));
  }
  EXPECT_THAT(worker->orders(), SizeIs(4));
  EXPECT_THAT(guest->orders(), ElementsAre(first.id, next.id, last.id));
}

TEST_F(SchedulerLanesTest, WhatIsOwedIsBounded) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Large(Submitted()));
  std::vector<Call> squares;
  for (int i = 0; i < 6; ++i) squares.push_back(SubmitReady(Large(MakeJob())));
  clock_.Advance(2 * Scheduler::kMostOwed);
  EXPECT_TRUE(GuestDone(first.id));
  const Call next = SubmitReady(Large(Submitted()));
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(Scheduler::kMostOwed);
    EXPECT_TRUE(Done(squares[i].id));
  }
  EXPECT_THAT(guest->orders(), ElementsAre(first.id, next.id));
}

TEST_F(SchedulerLanesTest, NobodyOwesForWhatNobodyWaitedFor) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Large(Submitted()));
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(GuestDone(first.id));
  const Call second = SubmitReady(Large(Submitted()));
  std::vector<Call> squares;
  for (int i = 0; i < 3; ++i) squares.push_back(SubmitReady(Large(MakeJob())));
  const Call third = SubmitReady(Large(Submitted()));
  EXPECT_TRUE(GuestDone(second.id));
  EXPECT_THAT(worker->orders(), ElementsAre(squares[0].id));
  EXPECT_TRUE(Done(squares[0].id));
  EXPECT_THAT(guest->orders(), ElementsAre(first.id, second.id, third.id));
}

// Who sends a call when the last was answered has nothing that waits in between.
TEST_F(SchedulerLanesTest, WhoSendsOneCallAfterTheOtherCatchesUpToo) {
  const auto worker = Ready();
  const auto guest = GuestReady();
  const Call first = SubmitReady(Large(Submitted()));
  Call square = SubmitReady(MakeJob());
  clock_.Advance(absl::Seconds(3));
  EXPECT_TRUE(GuestDone(first.id));
  const Call next = SubmitReady(Large(Submitted()));
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(absl::Milliseconds(5));
    EXPECT_TRUE(Done(square.id));
    clock_.Advance(absl::Milliseconds(5));
    scheduler_.Tick();
    EXPECT_THAT(guest->orders(), ElementsAre(first.id));
    square = SubmitReady(MakeJob());
  }
  EXPECT_TRUE(Done(square.id));
  clock_.Advance(Scheduler::kTurn);
  scheduler_.Tick();
  EXPECT_THAT(guest->orders(), ElementsAre(first.id, next.id));
}

}  // namespace
}  // namespace gridclock
