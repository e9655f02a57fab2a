// A measurement by one method held against another.
#include <algorithm>

#include "kernels/timing/agreement.h"
#include "tests/unit/timing/measure_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(MeasureTest, TwoMethodsThatDisagreeAreSuspect) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts.launch_offset_ns = 2'000;
  // Less the offset 1,098 us; the device says 1,000 us, and 3 % of it are allowed.
  device_.duration_ns = [](std::int64_t, Method method) {
    return method == Method::kIsolated ? 1'100'000.0 : 1'000'000.0;
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
  EXPECT_THAT(m.timing.samples_ns, Each(1'100'000.0));
  EXPECT_EQ(m.timing.second,
            (SecondOpinion{.method = Method::kDeviceTime, .median_ns = 1'000'000}));
}

TEST_F(MeasureTest, ALaunchWithoutARecordHasNoSecondOpinion) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kDeviceTime] = absl::NotFoundError("no record");

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_EQ(m.timing.second, std::nullopt);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect)) << "it has bytes to move";
}

TEST_F(MeasureTest, ALostRecordCostsTheSecondOpinionNotTheMeasurement) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kDeviceTime] = absl::UnavailableError("lost 2 records");

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_EQ(m.timing.second, std::nullopt);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
  EXPECT_THAT(Go({.method = Method::kDeviceTime, .schedule = {}}),
              StatusIs(absl::StatusCode::kUnavailable, "lost 2 records"));
}

TEST_F(MeasureTest, WhereThereIsNothingToMoveNoRecordIsAsItShouldBe) {
  work_ = {};
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kDeviceTime] = absl::NotFoundError("no record");

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
}

TEST_F(MeasureTest, WhereThereIsNothingToMoveALostRecordIsSuspectAllTheSame) {
  work_ = {};
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kDeviceTime] = absl::UnavailableError("lost 2 records");

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, Contains(Flag::kSuspect));
}

TEST_F(MeasureTest, ALaunchThatTheSecondMethodCannotTimeCostsTheSecondOpinionAlone) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kIsolated] = WithReason(absl::AbortedError("waited"), "LAUNCH_WAITED");

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime, .schedule = {}}));

  EXPECT_THAT(m.timing.samples_ns, SizeIs(10));
  EXPECT_EQ(m.timing.second, std::nullopt);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
}

// Warm-up, samples and second opinion take 60, 10 and 11 launches.
TEST_F(MeasureTest, ARecordLostWhileInDoubtLeavesTheDoubt) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.duration_ns = [](std::int64_t, Method method) {
    return method == Method::kIsolated ? 1'100'000.0 : 1'000'000.0;
  };
  device_.refuses_after = 60 + 10 + 11;
  work_ = {};  // Nothing to move: without a disagreement no record would be as it should be.
  for (const Method lost : {Method::kIsolated, Method::kDeviceTime}) {
    device_.launches.clear();
    live_.clear();
    live_warmups_.clear();
    device_.refusals = {{lost, absl::UnavailableError("lost 2 records")}};

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

    EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
    EXPECT_THAT(m.timing.samples_ns, Each(1'100'000.0));
  }
}

TEST(Agreement, HasTheTolerancesOfRuleTwo) {
  EXPECT_EQ(kAgreeWithinNs, 500);
  EXPECT_EQ(kAgreeWithinShare, 0.03);
  EXPECT_TRUE(Agree(3'650, 1'000, 2'150));
  EXPECT_FALSE(Agree(3'651, 1'000, 2'150));
  EXPECT_FALSE(Agree(2'649, 1'000, 2'150));
  EXPECT_TRUE(Agree(1'030'000, 1'000'000, 0));
  EXPECT_FALSE(Agree(1'030'001, 1'000'000, 0));
}

TEST(Agreement, OfASlopeLeavesTheLaunchInOrOut) {
  EXPECT_TRUE(SlopeAgrees(10'000, 10'000, 2'000));
  EXPECT_TRUE(SlopeAgrees(12'500, 10'000, 2'000));
  EXPECT_FALSE(SlopeAgrees(12'501, 10'000, 2'000));
  EXPECT_TRUE(SlopeAgrees(9'500, 10'000, 2'000));
  EXPECT_FALSE(SlopeAgrees(9'499, 10'000, 2'000));
  EXPECT_TRUE(SlopeAgrees(1'032'000, 1'000'000, 2'000));
  EXPECT_FALSE(SlopeAgrees(1'032'001, 1'000'000, 2'000));
  EXPECT_FALSE(SlopeAgrees(969'999, 1'000'000, 2'000));
}

// As beside a neighbour, who takes turns of the longer graph.
TEST_F(MeasureTest, ASlopeThatTheDevicesRecordDoesNotBearOutIsSuspect) {
  device_.known = {Method::kIsolated, Method::kDeviceTime, Method::kBackToBack};
  device_.facts.launch_offset_ns = 2'000;
  for (const double slope : {1'060'000.0, 940'000.0, 1'010'000.0}) {
    device_.launches.clear();
    live_.clear();
    live_warmups_.clear();
    device_.duration_ns = [slope](std::int64_t, Method method) {
      return method == Method::kBackToBack ? slope : 1'000'000.0;
    };

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kBackToBack, .schedule = {}}));

    EXPECT_EQ(m.timing.second,
              (SecondOpinion{.method = Method::kDeviceTime, .median_ns = 1'000'000}));
    EXPECT_THAT(device_.launches, Not(Contains(Method::kIsolated)));
    EXPECT_EQ(std::count(m.flags.begin(), m.flags.end(), Flag::kSuspect),
              slope == 1'010'000 ? 0 : 1)
        << slope;
  }
}

TEST_F(MeasureTest, TwoMethodsThatAgreeAreNot) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts.launch_offset_ns = 2'000;
  device_.duration_ns = [](std::int64_t, Method method) {
    return method == Method::kIsolated ? 12'400.0 : 10'000.0;
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime, .schedule = {}}));

  EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
  EXPECT_THAT(m.timing.samples_ns, Each(10'000.0));
}

TEST_F(MeasureTest, WhatMovedBetweenTheTwoSeriesIsNoDisagreement) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts.launch_offset_ns = 2'000;
  // 2 % slower for a while from the first launch by the second method on, whose offset is 2 % less.
  std::int64_t second = 0;
  device_.duration_ns = [&](std::int64_t, Method method) {
    second += method == Method::kIsolated ? 1 : 0;
    const bool slow = second >= 1 && second <= 11;
    return (slow ? 104'000.0 : 102'000.0) + (method == Method::kIsolated ? 4'000 : 0);
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime, .schedule = {}}));

  EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
  EXPECT_EQ(m.timing.second, (SecondOpinion{.method = Method::kIsolated, .median_ns = 108'000}));
}

TEST_F(MeasureTest, SamplesThatNoMethodSeesAnyMoreAreSuspect) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts.launch_offset_ns = 2'000;
  // 5 % slower from the first launch by the second method on, by either.
  bool second = false;
  device_.duration_ns = [&](std::int64_t, Method method) {
    second = second || method == Method::kIsolated;
    return (second ? 105'000.0 : 100'000.0) + (method == Method::kIsolated ? 2'000 : 0);
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime, .schedule = {}}));

  EXPECT_THAT(m.flags, Contains(Flag::kSuspect));
}

}  // namespace
}  // namespace gridclock
