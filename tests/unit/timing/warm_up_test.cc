// How long a measurement warms up, and by which clock.
#include "tests/unit/timing/measure_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(MeasureTest, WarmsUpForThreeFlatWindowsOfTwentyMilliseconds) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_TRUE(m.timing.warmup_flat);
  EXPECT_EQ(m.timing.warmups, 60);
  EXPECT_EQ(m.launches, 70);
  EXPECT_THAT(live_warmups_, ElementsAre(1e6, 1e6, 1e6));
}

TEST_F(MeasureTest, WarmsUpLongerWhileTimesFall) {
  // The first 20 launches are slow: their two windows do not count.
  device_.duration_ns = [](std::int64_t i, Method) { return i < 20 ? 2e6 : 1e6; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_TRUE(m.timing.warmup_flat);
  EXPECT_EQ(m.timing.warmups, 20 + 60);
  EXPECT_THAT(m.timing.samples_ns, Each(1e6));
}

TEST_F(MeasureTest, GivesUpWarmingUpAtTheLimit) {
  // Every window is 2 % slower than the one before.
  device_.duration_ns = [](std::int64_t i, Method) { return 20e6 * (1 + 0.02 * i); };

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.warmup_limit = absl::Milliseconds(100), .schedule = {}}));

  EXPECT_FALSE(m.timing.warmup_flat);
  EXPECT_EQ(m.timing.warmups, 5);
}

// The samples alone would do: their interval is narrow, and they may all drift.
TEST_F(MeasureTest, AWarmUpThatDidNotBecomeFlatIsNoisy) {
  device_.duration_ns = [](std::int64_t i, Method) { return i < 5 ? 20e6 * (1 + 0.02 * i) : 20e6; };
  const MeasureOptions options = {.warmup_limit = absl::Milliseconds(100), .schedule = {}};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go(options));

  EXPECT_EQ(m.timing.stop, StopReason::kInterval);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy));
}

TEST_F(MeasureTest, DoesNotWarmUpWithoutTime) {
  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.warmup_limit = absl::ZeroDuration(), .schedule = {}}));

  EXPECT_EQ(m.timing.warmups, 0);
  EXPECT_FALSE(m.timing.warmup_flat);
  EXPECT_EQ(m.launches, 10);
}

// Two neighbouring values of a timer with steps of 32 ns, 1.3 % apart, window by window.
double StepApart(std::int64_t i, Method) {
  return (i / 8000) % 2 == 0 ? 2528 : 2560;
}

TEST_F(MeasureTest, WindowsMoreThanAHundredthApartAreNotFlat) {
  device_.duration_ns = StepApart;
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));
  EXPECT_FALSE(m.timing.warmup_flat);
}

TEST_F(MeasureTest, UnlessItIsOneStepOfTheGpusEvents) {
  device_.duration_ns = StepApart;
  device_.facts.host_memory = false;
  device_.facts.clock_step_ns = 32;
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));
  EXPECT_TRUE(m.timing.warmup_flat);
}

TEST_F(MeasureTest, WarmsUpUntilTheClockIsFlatToo) {
  // Times are the same from the start, as of a kernel that waits for memory; the clock still rises
  // for four windows.
  device_.clock_hz = [](std::int64_t i) { return i < 4 ? 1e9 + 1e8 * i : 2e9; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_TRUE(m.timing.warmup_flat);
  EXPECT_EQ(m.timing.warmups, 7 * 20);
}

// The clock steps by 0.4 % from window to window, six times, or for ever.
TEST_F(MeasureTest, WaitsAFifthOfASecondForASteadyClock) {
  for (const auto& [steps, windows] : {std::pair{6, 8}, {1000, 10}}) {
    live_.clear();
    live_warmups_.clear();
    device_.clock_hz = [steps = steps](std::int64_t i) {
      return i < steps && i % 2 == 0 ? 1.972e9 : 1.98e9;
    };

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

    EXPECT_TRUE(m.timing.warmup_flat);
    EXPECT_EQ(m.timing.warmups, windows * 20);
    EXPECT_THAT(m.flags, IsEmpty());
  }
}

// It waits for a steady clock, and meanwhile times begin to move.
TEST_F(MeasureTest, WhatIsNoLongerFlatIsNotFlat) {
  device_.clock_hz = [](std::int64_t i) { return i % 2 == 0 ? 1.972e9 : 1.98e9; };
  device_.duration_ns = [](std::int64_t i, Method) { return i < 80 ? 1e6 : 20e6 * (1 + 0.02 * i); };

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.warmup_limit = absl::Milliseconds(300), .schedule = {}}));

  EXPECT_FALSE(m.timing.warmup_flat);
  EXPECT_THAT(m.flags, Contains(Flag::kNoisy));
}

TEST_F(MeasureTest, OfAScheduleTheClockIsThatBehindItsWarmUp) {
  device_.clock_hz = [this](std::int64_t) {
    return 1e9 + static_cast<double>(device_.launches.size());
  };

  ASSERT_OK_AND_ASSIGN(
      const Measurement m,
      Go({.schedule = Schedule{.wait = 2, .warmup = 3, .active = 10, .repeat = 2}}));

  EXPECT_EQ(m.timing.clock_before_hz, 1e9 + 5);
  EXPECT_EQ(m.timing.clock_after_hz, 1e9 + 30);
}

TEST_F(MeasureTest, TellsTheClockRightBeforeAndAfterTheSamples) {
  device_.clock_hz = [](std::int64_t i) {
    return i < 4 ? 1.98e9 : 1.90e9;
  };  // Three windows come first.

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_EQ(m.timing.clock_before_hz, 1.98e9);
  EXPECT_EQ(m.timing.clock_after_hz, 1.90e9);
  live_.clear();
  live_warmups_.clear();
  ASSERT_OK_AND_ASSIGN(const Measurement taught, Go({.method = Method::kHostSync, .schedule = {}}));
  EXPECT_EQ(taught.timing.clock_before_hz, 0) << "the first call is what counts there";
}

}  // namespace
}  // namespace gridclock
