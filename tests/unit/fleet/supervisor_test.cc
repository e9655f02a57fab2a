#include "server/fleet/supervisor.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace gridclock {
namespace {

using End = Supervisor::End;

// Without jitter, so that waits are literals.
Supervisor::Options Exact() {
  Supervisor::Options options;
  options.jitter = 0;
  return options;
}

class SupervisorTest : public ::testing::Test {
 protected:
  absl::Duration WaitAfter(End end) {
    const absl::Duration wait = supervisor_.OnEnd(end, clock_.Now()) - clock_.Now();
    clock_.Advance(wait);
    return wait;
  }
  void Ready() { supervisor_.OnReady(clock_.Now()); }

  FakeClock clock_;
  Supervisor supervisor_{Exact(), 1};
};

TEST_F(SupervisorTest, AJobsFaultOrAKillFromOutsideIsAnsweredAtOnce) {
  for (int i = 0; i < 100; ++i) {
    Ready();
    EXPECT_EQ(WaitAfter(i % 2 == 0 ? End::kJob : End::kOutside), absl::ZeroDuration());
  }
  EXPECT_FALSE(supervisor_.quarantined());
}

TEST_F(SupervisorTest, AKillBeforeItWasReadyWaits) {
  EXPECT_EQ(WaitAfter(End::kOutside), absl::Milliseconds(100));
}

TEST_F(SupervisorTest, WaitsDoubleAndBeginAnewAfterACalmMinute) {
  EXPECT_EQ(WaitAfter(End::kItself), absl::Milliseconds(100));
  EXPECT_EQ(WaitAfter(End::kItself), absl::Milliseconds(200));
  Ready();
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(WaitAfter(End::kItself), absl::Milliseconds(400));
  Ready();
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(WaitAfter(End::kItself), absl::Milliseconds(100));
}

TEST_F(SupervisorTest, E13_FiveEndsInAMinuteOpenTheBreakerAndAProbeClosesIt) {
  for (int i = 0; i < 4; ++i) {
    WaitAfter(End::kItself);
    EXPECT_FALSE(supervisor_.quarantined());
  }
  EXPECT_EQ(WaitAfter(End::kItself), absl::Seconds(30));
  EXPECT_TRUE(supervisor_.quarantined());
  EXPECT_EQ(WaitAfter(End::kItself), absl::Seconds(30)) << "the probe failed";
  EXPECT_TRUE(supervisor_.quarantined());
  Ready();
  EXPECT_FALSE(supervisor_.quarantined());
  EXPECT_LT(WaitAfter(End::kItself), absl::Seconds(30));
  EXPECT_FALSE(supervisor_.quarantined());
}

// Each takes its time to measure the device, so that five take longer than the window.
TEST_F(SupervisorTest, E13_FiveStartsInARowThatFailOpenTheBreakerHoweverLongTheyTake) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(supervisor_.quarantined());
    clock_.Advance(absl::Seconds(40));
    WaitAfter(End::kItself);
  }
  EXPECT_TRUE(supervisor_.quarantined());
}

TEST_F(SupervisorTest, AHungStartOpensTheBreaker) {
  EXPECT_EQ(WaitAfter(End::kHungStart), absl::Seconds(30));
  EXPECT_TRUE(supervisor_.quarantined());
}

TEST_F(SupervisorTest, WhatTheSystemLacksNeverOpensTheBreaker) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(WaitAfter(End::kStarved), absl::Seconds(1));
    EXPECT_FALSE(supervisor_.quarantined());
  }
  EXPECT_EQ(WaitAfter(End::kItself), absl::Milliseconds(100))
      << "the waits of others are as before";
}

TEST(Supervisor, ASpawnFailsOfTheSystemOrOfItself) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, EAGAIN}) {
    EXPECT_EQ(Supervisor::EndOfSpawn(absl::ErrnoToStatus(error, "")), End::kStarved) << error;
  }
  for (const int error : {ENOENT, ENOEXEC, EACCES, EINVAL, EBADF}) {
    EXPECT_EQ(Supervisor::EndOfSpawn(absl::ErrnoToStatus(error, "")), End::kItself) << error;
  }
}

TEST_F(SupervisorTest, RareEndsNeverOpenTheBreaker) {
  for (int i = 0; i < 20; ++i) {
    Ready();
    clock_.Advance(absl::Seconds(61));
    WaitAfter(End::kItself);
    WaitAfter(End::kOutside);  // While it starts.
    EXPECT_FALSE(supervisor_.quarantined());
  }
}

TEST(Supervisor, WaitsNeverPassTheLongestAndVaryByTheJitter) {
  Supervisor::Options options;
  options.breaker_ends = 1000;
  options.breaker_window = absl::Seconds(1);
  Supervisor supervisor(options, 7);
  FakeClock clock;
  bool varies = false;
  for (int i = 0; i < 50; ++i) {
    const absl::Duration wait = supervisor.OnEnd(End::kItself, clock.Now()) - clock.Now();
    EXPECT_LE(wait, absl::Seconds(36));
    EXPECT_GE(wait, absl::Milliseconds(80));
    if (i > 20 && wait != absl::Seconds(30)) varies = true;
    clock.Advance(absl::Seconds(2));
  }
  EXPECT_TRUE(varies);
}

}  // namespace
}  // namespace gridclock
