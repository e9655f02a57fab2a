// What guests say of their time: it lies between their orders and their answers, and is none twice.
#include <utility>
#include <vector>

#include "tests/unit/core/lanes_fixture.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;

Outcome WithPhases(std::vector<Phase> phases) {
  Outcome outcome;
  outcome.phases = std::move(phases);
  return outcome;
}

TEST_F(SchedulerLanesTest, AGuestWasNotBusyBeforeItsOrderNorBeyondItsAnswer) {
  Ready();
  GuestReady();
  const Call call = Submit(Submitted());
  clock_.Advance(absl::Nanoseconds(1000));
  scheduler_.Start(call.id);
  clock_.Advance(absl::Nanoseconds(500));
  EXPECT_TRUE(scheduler_.OnDone(call.id, 100,
                                {.status = absl::OkStatus(),
                                 .outcome = WithPhases({{PhaseKind::kLaunched, 0, 1200},
                                                        {PhaseKind::kFinished, 10, 9000}})}));
  EXPECT_THAT(
      call.listener->end()->outcome->phases,
      ElementsAre(Phase{PhaseKind::kReceived, 0, 1000}, Phase{PhaseKind::kQueued, 1000, 1000},
                  Phase{PhaseKind::kLaunched, 1000, 1200},
                  Phase{PhaseKind::kFinished, 1000, 1500}));
}

// Else each of the orders that wait at it could claim the same time.
TEST_F(SchedulerLanesTest, AGuestWorksOnOneOrderAfterTheOther) {
  Ready();
  GuestReady();
  std::vector<Call> calls;
  calls.reserve(3);
  for (int i = 0; i < 3; ++i) calls.push_back(SubmitReady(Submitted()));
  clock_.Advance(absl::Nanoseconds(1000));
  const Phase claims[] = {
      {PhaseKind::kFinished, 0, 600}, {PhaseKind::kFinished, 0, 700}, {PhaseKind::kFinished, 5, 9}};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(scheduler_.OnDone(
        calls[i].id, 100, {.status = absl::OkStatus(), .outcome = WithPhases({claims[i]})}));
  }
  const auto finished = [&](int i) { return calls[i].listener->end()->outcome->phases.back(); };
  EXPECT_EQ(finished(0), (Phase{PhaseKind::kFinished, 0, 600}));
  EXPECT_EQ(finished(1), (Phase{PhaseKind::kFinished, 600, 700}));
  EXPECT_EQ(finished(2), (Phase{PhaseKind::kFinished, 700, 700}));
}

TEST_F(SchedulerLanesTest, WhatTheCataloguesWorkerSaysOfItsTimeIsKept) {
  Ready();
  const Call call = SubmitReady(MakeJob());
  EXPECT_TRUE(scheduler_.OnDone(
      call.id, 1,
      {.status = absl::OkStatus(), .outcome = WithPhases({{PhaseKind::kFinished, 10, 9000}})}));
  EXPECT_EQ(call.listener->end()->outcome->phases.back(), (Phase{PhaseKind::kFinished, 10, 9000}));
}

}  // namespace
}  // namespace gridclock
