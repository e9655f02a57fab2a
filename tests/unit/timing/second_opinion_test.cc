// A measurement by one method held against another.
#include <algorithm>

#include "kernels/timing/agreement.h"
#include "tests/unit/timing/measure_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

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

// Two in a row are, three are none.
TEST_F(MeasureTest, ALaunchWhoseRecordIsLostIsMadeAgain) {
  for (const std::int64_t lost : {2, 3}) {
    device_.known = {Method::kDeviceTime};
    device_.launches.clear();
    live_.clear();
    live_warmups_.clear();
    device_.refusals[Method::kDeviceTime] =
        WithReason(absl::UnavailableError("lost 2 records"), "RECORD_LOST");
    device_.refuses_after = 65;
    device_.refuses_times = lost;

    const auto m = Go({.method = Method::kDeviceTime, .schedule = {}});

    if (lost == 3) {
      EXPECT_THAT(m, StatusIs(absl::StatusCode::kUnavailable, "lost 2 records"));
      continue;
    }
    ASSERT_THAT(m, IsOk());
    EXPECT_THAT(m->timing.samples_ns, SizeIs(10));
    EXPECT_THAT(m->flags, IsEmpty());
  }
}

// Warm-up and the one sample leave no time for a launch by the other method.
TEST_F(MeasureTest, ASecondOpinionThatNoTimeWasLeftForIsMissed) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.duration_ns = [](std::int64_t, Method) { return 15e9; };
  kernel_time_limit_ = absl::Seconds(30);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.schedule = {}}));

  EXPECT_THAT(m.interruption, IsOk());
  EXPECT_EQ(m.timing.stop, StopReason::kBudget);
  EXPECT_EQ(m.timing.second, std::nullopt);
  EXPECT_THAT(m.flags, Contains(Flag::kSuspect));
}

// The one launch that tells whether the time can be believed is waited for.
TEST_F(MeasureTest, OneLaunchIsTheSecondOpinionWhereOthersWait) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.duration_ns = [](std::int64_t, Method) { return 1e9; };
  kernel_time_limit_ = absl::Minutes(10);
  yields_at_ = clock_.Now() + absl::Seconds(20);

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.min_samples = 500, .budget = absl::Minutes(5), .schedule = {}}));

  EXPECT_EQ(m.timing.stop, StopReason::kYielded);
  ASSERT_TRUE(m.timing.second.has_value());
  EXPECT_EQ(m.timing.second->method, Method::kDeviceTime);
  EXPECT_EQ(clock_.Now() - yields_at_, absl::Seconds(1));
  EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
}

// A device that learns by many launches how to time one would else make them all.
TEST_F(MeasureTest, ALongLaunchIsNotMadeAgainAndAgainForTheDeviceToLearn) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.duration_ns = [](std::int64_t, Method) { return 7e9; };
  device_.provisional = [](Method method) { return method == Method::kDeviceTime; };
  kernel_time_limit_ = absl::Seconds(30);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.schedule = Schedule{.active = 3, .repeat = 1}}));

  EXPECT_EQ(m.launches, 3 + 2) << "the second of them passes the limit";
  EXPECT_THAT(m.interruption, IsOk());
  EXPECT_THAT(m.timing.samples_ns, SizeIs(3));
  EXPECT_EQ(m.timing.second, (SecondOpinion{.method = Method::kDeviceTime, .median_ns = 7e9}));
}

TEST_F(MeasureTest, LaunchesThatTheTimeWasEnoughForAreASecondOpinion) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  kernel_time_limit_ = absl::Seconds(30);
  for (const double by_record : {6e9, 8e9}) {
    device_.duration_ns = [&](std::int64_t, Method method) {
      return method == Method::kIsolated ? 6e9 : by_record;
    };
    live_.clear();
    live_warmups_.clear();

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.schedule = {}}));

    EXPECT_THAT(m.interruption, IsOk());
    EXPECT_EQ(m.timing.second,
              (SecondOpinion{.method = Method::kDeviceTime, .median_ns = by_record}));
    EXPECT_EQ(std::count(m.flags.begin(), m.flags.end(), Flag::kSuspect), by_record > 6e9 ? 1 : 0);
  }
}

TEST_F(MeasureTest, WhereThereIsNothingToMoveNoRecordIsAsItShouldBeOfAnEmptyLaunchsTime) {
  work_ = {};
  device_.facts.launch_floor_ns = 3'000;
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.refusals[Method::kDeviceTime] = absl::NotFoundError("no record");
  for (const double ns : {3'000.0, 14'000.0, 14'001.0, 1e6}) {
    device_.duration_ns = [ns](std::int64_t, Method) { return ns; };
    live_.clear();
    live_warmups_.clear();

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

    EXPECT_EQ(std::count(m.flags.begin(), m.flags.end(), Flag::kSuspect), ns > 14'000 ? 1 : 0)
        << ns;
  }
}

TEST_F(MeasureTest, WhereThereIsNothingToMoveALostRecordIsSuspectAllTheSame) {
  work_ = {};
  device_.duration_ns = [](std::int64_t, Method) { return 3'000.0; };
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
  const std::pair<Method, absl::Status> refusals[] = {
      {Method::kIsolated, absl::UnavailableError("lost 2 records")},
      {Method::kDeviceTime, absl::UnavailableError("lost 2 records")},
      {Method::kIsolated, absl::AbortedError("the device is disturbed")}};
  for (const auto& refusal : refusals) {
    device_.launches.clear();
    live_.clear();
    live_warmups_.clear();
    device_.refusals = {refusal};

    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

    EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
    EXPECT_THAT(m.timing.samples_ns, Each(1'100'000.0));
  }
}

TEST(Agreement, HasTheTolerancesOfRuleTwo) {
  EXPECT_EQ(kAgreeWithinNs, 500);
  EXPECT_EQ(kAgreeWithinShare, 0.03);
  EXPECT_EQ(kMostGapsNs, 5'000);
  EXPECT_EQ(kMostGapsShare, 0.1);
  EXPECT_EQ(kMostCopiesNs, 10'000);
  EXPECT_EQ(kCopyWaitsNs, 9'000);
  EXPECT_EQ(kNothingWithinFloors, 3);
  EXPECT_EQ(kNothingWithinNs, 5'000);
  EXPECT_TRUE(Agree(3'650, 1'000, Offset{.launch_ns = 2'150}));
  EXPECT_FALSE(Agree(3'651, 1'000, Offset{.launch_ns = 2'150}));
  EXPECT_FALSE(Agree(2'649, 1'000, Offset{.launch_ns = 2'150}));
  EXPECT_TRUE(Agree(1'030'000, 1'000'000, Offset{.launch_ns = 0}));
  EXPECT_FALSE(Agree(1'030'001, 1'000'000, Offset{.launch_ns = 0}));
}

DeviceInfo WithOffsets(double launch, double kernel = 0, double copy = 0) {
  DeviceInfo info;
  info.launch_offset_ns = launch;
  info.kernel_offset_ns = kernel;
  info.copy_offset_ns = copy;
  return info;
}

TEST(Agreement, OfASlopeOfOneKernelHasNoLaunchInIt) {
  const auto agrees = [](double slope, double device) {
    return Agree(slope, device, SlopeOffset(WithOffsets(2'000), {}, device));
  };
  EXPECT_TRUE(agrees(10'500, 10'000));
  EXPECT_FALSE(agrees(10'501, 10'000));
  EXPECT_TRUE(agrees(9'500, 10'000));
  EXPECT_FALSE(agrees(9'499, 10'000));
  EXPECT_TRUE(agrees(1'030'000, 1'000'000));
  EXPECT_FALSE(agrees(1'030'001, 1'000'000));
  EXPECT_FALSE(agrees(969'999, 1'000'000));
}

Further Ran(std::int64_t kernels, std::int64_t copies = 0) {
  std::vector<Launch> ran;
  if (kernels > 0) ran.push_back({.name = "k", .count = kernels});
  if (copies > 0) ran.push_back({.name = "memcpy", .count = copies});
  return FurtherOf(ran, copies);
}

bool IsolatedAgrees(double isolated, double device, const DeviceInfo& info, const Further& ran) {
  return Agree(isolated, device, IsolatedOffset(info, ran, device));
}

// Of an H200, where records leave the larger gaps, and a copy less than it takes.
TEST(Agreement, LeavesWhatEachFurtherKernelAndCopyAddsInOrOut) {
  const DeviceInfo info = WithOffsets(2'000, -100, 3'000);
  for (const auto& one : {Ran(0), Ran(1), Ran(0, 1)}) {
    EXPECT_TRUE(IsolatedAgrees(12'500, 10'000, info, one));
    EXPECT_FALSE(IsolatedAgrees(12'501, 10'000, info, one));
    EXPECT_FALSE(IsolatedAgrees(11'499, 10'000, info, one));
  }
  EXPECT_TRUE(IsolatedAgrees(10'000, 10'000, info, Ran(16)));
  EXPECT_FALSE(IsolatedAgrees(9'999, 10'000, info, Ran(16)));
  EXPECT_FALSE(IsolatedAgrees(12'501, 10'000, info, Ran(16)));
  EXPECT_TRUE(IsolatedAgrees(21'500, 10'000, info, Ran(1, 1)));
  EXPECT_FALSE(IsolatedAgrees(21'501, 10'000, info, Ran(1, 1)));
  EXPECT_TRUE(IsolatedAgrees(9'500, 10'000, info, Ran(1, 1)));
  EXPECT_FALSE(IsolatedAgrees(9'499, 10'000, info, Ran(1, 1)));
}

// Both count as kernels: a fill does not wait for the bus, and submitted code may have any name.
TEST(Agreement, ACopyIsWhatWasRecordedAsOneWhateverItsName) {
  const DeviceInfo info = WithOffsets(2'000, -100, 3'000);
  for (const char* name : {"memset", "memcpy"}) {
    const std::vector<Launch> two = {{.name = name, .count = 1}, {.name = "k", .count = 1}};
    EXPECT_FALSE(IsolatedAgrees(12'501, 10'000, info, FurtherOf(two, 0))) << name;
    EXPECT_TRUE(IsolatedAgrees(11'400, 10'000, info, FurtherOf(two, 0))) << name;
    EXPECT_TRUE(IsolatedAgrees(21'500, 10'000, info, FurtherOf(two, 1))) << name;
  }
}

TEST(Agreement, BoundsWhatVeryManyLaunchesMayAdd) {
  EXPECT_EQ(kMostGapsNs, 5'000);
  EXPECT_EQ(kMostGapsShare, 0.1);
  EXPECT_EQ(IsolatedOffset(WithOffsets(2'000, -1'500), Ran(1001), 3'700'000).below_ns, 370'000);
  EXPECT_EQ(IsolatedOffset(WithOffsets(2'000, -1'500), Ran(1001), 20'000).below_ns, 5'000);
  EXPECT_EQ(IsolatedOffset(WithOffsets(2'000, 1'500), Ran(1001), 20'000).above_ns, 5'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000), Ran(1001), 20'000).below_ns, 5'000);
  EXPECT_EQ(kMostCopiesNs, 10'000);
  EXPECT_EQ(IsolatedOffset(WithOffsets(2'000, 0, 3'000), Ran(1, 1001), 20'000).above_ns, 10'000);
  EXPECT_EQ(IsolatedOffset(WithOffsets(2'000, 0, -3'000), Ran(1, 1001), 20'000).below_ns, 10'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000), Ran(1, 1001), 20'000).above_ns, 12'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000), Ran(1, 1001), 20'000).below_ns, 10'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000), Ran(1, 1), 8'000).below_ns, 4'000);
  EXPECT_EQ(kCopyWaitsNs, 9'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000, 0, 6'000), Ran(1, 1), 20'000).above_ns, 11'000);
  EXPECT_EQ(SlopeOffset(WithOffsets(2'000, 0, 9'500), Ran(1, 1), 20'000).above_ns, 11'500);
}

TEST(Agreement, OfASlopeLeavesFurtherLaunchesInOrOut) {
  const auto agrees = [](double slope, const Further& ran) {
    return Agree(slope, 100'000, SlopeOffset(WithOffsets(2'000), ran, 100'000));
  };
  EXPECT_TRUE(agrees(93'000, Ran(3)));
  EXPECT_FALSE(agrees(92'999, Ran(3)));
  EXPECT_TRUE(agrees(105'000, Ran(3)));
  EXPECT_FALSE(agrees(105'001, Ran(3)));
  EXPECT_TRUE(agrees(114'000, Ran(1, 1)));
  EXPECT_FALSE(agrees(114'001, Ran(1, 1)));
  EXPECT_TRUE(agrees(88'000, Ran(1, 1)));
  EXPECT_FALSE(agrees(87'999, Ran(1, 1)));
}

// Of samples at 2 GHz. Both methods see what it takes at 1.8 GHz, from the second opinion on.
class ClockFellTest : public MeasureTest {
 protected:
  absl::StatusOr<Measurement> WhereItTakesThen(double then_ns, bool throttled = true) {
    device_.conditions.throttled = throttled;
    device_.known = {Method::kIsolated, Method::kDeviceTime};
    bool fell = false;
    device_.duration_ns = [=](std::int64_t, Method method) mutable {
      fell = fell || method == Method::kDeviceTime;
      return fell ? then_ns : 1'000'000.0;
    };
    device_.clock_hz = [this](std::int64_t) {
      return device_.launches.back() == Method::kDeviceTime ? 1.8e9 : 2e9;
    };
    return Go({});
  }
};

TEST_F(ClockFellTest, MakesNoisyWhatWentWithIt) {
  for (const double then_ns : {1'000'000.0 * 2 / 1.8, 1'050'000.0}) {
    ASSERT_OK_AND_ASSIGN(const Measurement m, WhereItTakesThen(then_ns));
    EXPECT_THAT(m.flags, ElementsAre(Flag::kThrottled, Flag::kNoisy));
    EXPECT_THAT(m.timing.samples_ns, Each(1'000'000.0));
    ASSERT_TRUE(m.timing.second.has_value());
    EXPECT_NEAR(m.timing.second->median_ns, then_ns, 1);
    live_.clear();
    live_warmups_.clear();
    device_.launches.clear();
  }
}

TEST_F(ClockFellTest, ExplainsNoMoreThanItFellBy) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, WhereItTakesThen(1'200'000));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect, Flag::kThrottled));
}

TEST_F(ClockFellTest, ExplainsNoTimeThatIsShorterThen) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, WhereItTakesThen(900'000));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect, Flag::kThrottled));
}

// The turns lie between the samples and the other method, near enough to each.
TEST_F(ClockFellTest, ExplainsNoMethodsThatAreApart) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.conditions.throttled = true;
  device_.clock_hz = [](std::int64_t) { return 2e9; };
  bool asked = false;
  device_.duration_ns = [=](std::int64_t, Method method) mutable {
    asked = asked || method == Method::kDeviceTime;
    if (method == Method::kDeviceTime) return 1'000'000.0;
    return asked ? 1'028'000.0 : 1'055'000.0;
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect, Flag::kThrottled));
}

TEST_F(ClockFellTest, ExplainsNothingWhereTheDriverKnowsOfNoReason) {
  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       WhereItTakesThen(1'000'000.0 * 2 / 1.8, /*throttled=*/false));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect, Flag::kNoisy));
}

TEST_F(ClockFellTest, ExplainsNothingBesideANeighbour) {
  device_.conditions.shared = true;
  ASSERT_OK_AND_ASSIGN(const Measurement m, WhereItTakesThen(1'000'000.0 * 2 / 1.8));
  EXPECT_THAT(m.flags, UnorderedElementsAre(Flag::kSuspect, Flag::kThrottled, Flag::kSharedDevice,
                                            Flag::kNoisy));
}

// A table's copy and one kernel: 3 us between the copy and the kernel that no record shows.
TEST_F(MeasureTest, TheGapBehindACopyIsNoDisagreement) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts = WithOffsets(2'000, 0, 1'000);
  device_.duration_ns = [](std::int64_t, Method method) {
    return method == Method::kIsolated ? 105'700.0 : 100'000.0;
  };
  const Launch copy{.name = "memcpy", .count = 1}, kernel{.name = "k", .count = 1};
  for (const Method method : {Method::kIsolated, Method::kDeviceTime}) {
    device_.ran = {copy, kernel};
    device_.copies = 1;
    ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = method, .schedule = {}}));
    EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
    EXPECT_EQ(m.timing.second->slack_ns, kCopyWaitsNs) << "it is told how little that says";
    live_.clear();
    live_warmups_.clear();
    device_.copies = 0;
    for (const std::vector<Launch>& kernels :
         std::vector<std::vector<Launch>>{{kernel}, {{.name = "memcpy", .count = 1}, kernel}}) {
      device_.ran = kernels;
      ASSERT_OK_AND_ASSIGN(const Measurement alone, Go({.method = method, .schedule = {}}));
      EXPECT_THAT(alone.flags, Contains(Flag::kSuspect)) << "without a copy nothing explains it";
      EXPECT_EQ(alone.timing.second->slack_ns, 0);
      live_.clear();
      live_warmups_.clear();
    }
  }
}

TEST_F(MeasureTest, ATimeThatTheDeviceOnlyLearnsFromIsNoSample) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  int by_record = 0;
  device_.duration_ns = [&](std::int64_t, Method method) {
    if (method != Method::kDeviceTime) return 100'000.0;
    return ++by_record <= 2 ? 120'000.0 : 100'000.0;
  };
  device_.provisional = [&](Method method) {
    return method == Method::kDeviceTime && by_record <= 2;
  };
  const MeasureOptions options = {.method = Method::kDeviceTime,
                                  .schedule = Schedule{.active = 5, .repeat = 1}};
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go(options));
  EXPECT_EQ(m.timing.samples_ns, std::vector<double>(5, 100'000.0));
  EXPECT_EQ(m.launches, 2 + 5 + 11);
  EXPECT_EQ(prepares_, 2 + 5 + 11) << "each meets the submitted values";

  by_record = 0;
  live_.clear();
  ASSERT_OK_AND_ASSIGN(const Measurement second,
                       Go({.schedule = Schedule{.active = 5, .repeat = 1}}));
  EXPECT_EQ(second.timing.second,
            (SecondOpinion{.method = Method::kDeviceTime, .median_ns = 100'000}));
  EXPECT_EQ(by_record, 2 + 11);
}

// Each asks the server for values and gives it outputs, and is counted by it: a launch that is no
// sample must not.
TEST_F(MeasureTest, WhatTheDeviceLearnsFromIsNoStepOfACheckedSample) {
  device_.known = {Method::kDeviceTime};
  device_.lazy = true;
  device_.provisional = [&](Method) { return device_.launches.size() <= 2; };
  std::string steps;
  const auto note = [&steps](char step) {
    return [&steps, step] {
      steps += step;
      return absl::OkStatus();
    };
  };
  const SampleSteps checked = {.before = note('b'), .after = note('a')};
  steps_ = &checked;
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime,
                                                .schedule = Schedule{.active = 3, .repeat = 1}}));
  EXPECT_THAT(m.timing.samples_ns, SizeIs(3));
  EXPECT_EQ(m.launches, 3 + 3) << "the launch that loads is made until it tells a time";
  EXPECT_EQ(steps, "bababa");

  live_.clear();
  steps.clear();
  device_.provisional = [](Method) { return false; };
  device_.refusals[Method::kDeviceTime] =
      WithReason(absl::UnavailableError("lost 2 records"), "RECORD_LOST");
  device_.refuses_after = std::ssize(device_.launches) + 1 + 1;
  device_.refuses_times = 1;
  EXPECT_THAT(Go({.method = Method::kDeviceTime, .schedule = Schedule{.active = 3, .repeat = 1}}),
              StatusIs(absl::StatusCode::kUnavailable, "lost 2 records"));
  EXPECT_EQ(steps, "bab") << "a launch that is made again would be a step out of turn";
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
  EXPECT_EQ(m.timing.second, (SecondOpinion{.method = Method::kIsolated, .median_ns = 106'000}))
      << "of the turns, with which the samples agree";
}

// The samples and the turns by their method are 2.5 % apart, and the methods 2 % in the turns: each
// would do, and the pair that is handed on is 4.5 % apart.
TEST_F(MeasureTest, SamplesMustAgreeWithTheSecondOpinionThatIsHandedOn) {
  device_.known = {Method::kIsolated, Method::kDeviceTime};
  device_.facts.launch_offset_ns = 2'000;
  bool second = false;
  device_.duration_ns = [&](std::int64_t, Method method) {
    second = second || method == Method::kIsolated;
    return (second ? 102'500.0 : 100'000.0) + (method == Method::kIsolated ? 4'000 : 0);
  };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kDeviceTime, .schedule = {}}));

  EXPECT_THAT(m.flags, ElementsAre(Flag::kSuspect));
  EXPECT_EQ(m.timing.second, (SecondOpinion{.method = Method::kIsolated, .median_ns = 106'500}));
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
