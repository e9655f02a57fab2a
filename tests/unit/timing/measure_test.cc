#include "kernels/timing/measure.h"

#include <array>

#include "tests/unit/timing/measure_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(MeasureTest, StopsWhenTheIntervalIsNarrow) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_EQ(m.timing.stop, StopReason::kInterval);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(10));
  EXPECT_THAT(m.timing.samples_ns, Each(1e6));
  EXPECT_EQ(m.timing.statistics.median, 1e6);
  EXPECT_THAT(m.flags, IsEmpty());
  EXPECT_THAT(m.interruption, IsOk());
}

TEST_F(MeasureTest, OnAGpuAHundredSamplesAreTheFewestUnlessTheRequestSaysOtherwise) {
  device_.facts.host_memory = false;
  device_.duration_ns = [](std::int64_t, Method) { return 1e7; };
  for (const auto& [min, max, taken] :
       {std::array<std::int64_t, 3>{0, 1000, 100}, {0, 30, 30}, {10, 1000, 10}, {200, 1000, 200}}) {
    live_.clear();
    live_warmups_.clear();
    ASSERT_OK_AND_ASSIGN(const Measurement m,
                         Go({.min_samples = min, .max_samples = max, .schedule = {}}));
    EXPECT_THAT(m.timing.samples_ns, SizeIs(taken));
    EXPECT_EQ(m.timing.stop, StopReason::kInterval);
  }
}

TEST_F(MeasureTest, OnAGpuTheyAreTakenForASecondUnlessTheRequestSaysOtherwise) {
  device_.facts.host_memory = false;
  device_.duration_ns = [](std::int64_t, Method) { return 2e5; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.timing.samples_ns, SizeIs(5000));
  EXPECT_EQ(m.timing.stop, StopReason::kInterval);
  live_.clear();
  live_warmups_.clear();
  ASSERT_OK_AND_ASSIGN(const Measurement asked, Go({.min_samples = 100, .schedule = {}}));
  EXPECT_THAT(asked.timing.samples_ns, SizeIs(100));
}

TEST_F(MeasureTest, OnAGpuTenThousandAreTheMostUnlessTheRequestSaysOtherwise) {
  device_.facts.host_memory = false;
  device_.duration_ns = [](std::int64_t, Method) { return 2e4; };
  for (const auto& [min, max, taken] :
       {std::array<std::int64_t, 3>{0, 0, 10'000}, {0, 12'000, 12'000}, {11'000, 0, 11'000}}) {
    live_.clear();
    live_warmups_.clear();
    ASSERT_OK_AND_ASSIGN(const Measurement m,
                         Go({.min_samples = min, .max_samples = max, .schedule = {}}));
    EXPECT_THAT(m.timing.samples_ns, SizeIs(taken));
  }
}

TEST_F(MeasureTest, AScheduleWarmsUpAsItSaysAndIsNotNoisyForIt) {
  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.schedule = Schedule{.warmup = 1, .active = 10, .repeat = 1}}));

  EXPECT_FALSE(m.timing.warmup_flat);
  EXPECT_THAT(m.flags, IsEmpty());
}

TEST_F(MeasureTest, StopsAtTheSampleLimitAndIsNoisy) {
  device_.duration_ns = [](std::int64_t i, Method) { return i % 2 == 0 ? 1e6 : 2e6; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.max_samples = 50, .schedule = {}}));

  EXPECT_EQ(m.timing.stop, StopReason::kMaxSamples);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(50));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy));
}

TEST_F(MeasureTest, EndsWithWhatItHasWhereOthersWait) {
  device_.duration_ns = [](std::int64_t i, Method) { return i % 2 == 0 ? 1e6 : 2e6; };
  const MeasureOptions long_one = {
      .max_samples = 1000000, .budget = absl::Minutes(10), .schedule = {}};
  yields_at_ = clock_.Now() + absl::Seconds(10);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go(long_one));

  EXPECT_THAT(m.interruption, IsOk());
  EXPECT_EQ(m.timing.stop, StopReason::kYielded);
  EXPECT_THAT(m.timing.samples_ns, Not(IsEmpty()));
  EXPECT_LT(clock_.Now() - yields_at_, absl::Milliseconds(3));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy));
}

class MeasureWhileOthersWaitTest : public MeasureTest {
 protected:
  MeasureWhileOthersWaitTest() {
    device_.duration_ns = [](std::int64_t, Method) { return 5e9; };
    kernel_time_limit_ = absl::Minutes(10);
    yields_at_ = clock_.Now();
  }
};

TEST_F(MeasureWhileOthersWaitTest, TheyAreNotKeptByWarmUp) {
  ASSERT_OK_AND_ASSIGN(
      const Measurement warm,
      Go({.budget = absl::Minutes(10), .warmup_limit = absl::Minutes(10), .schedule = {}}));
  EXPECT_EQ(warm.timing.stop, StopReason::kYielded);
  EXPECT_EQ(warm.timing.warmups, 1);
  EXPECT_THAT(warm.timing.samples_ns, SizeIs(1));
}

TEST_F(MeasureWhileOthersWaitTest, TheyAreNotKeptByASchedule) {
  ASSERT_OK_AND_ASSIGN(
      const Measurement m,
      Go({.schedule = Schedule{.wait = 9, .warmup = 9, .active = 9, .repeat = 9}}));

  EXPECT_THAT(m.interruption, IsOk());
  EXPECT_EQ(m.timing.stop, StopReason::kYielded);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(1));
}

TEST_F(MeasureTest, AScheduleThatIsThroughDidNotYield) {
  device_.duration_ns = [](std::int64_t, Method) { return 1e9; };
  yields_at_ = clock_.Now() + absl::Seconds(3);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.schedule = Schedule{.active = 3, .repeat = 1}}));

  EXPECT_EQ(m.timing.stop, StopReason::kSchedule);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(3));
}

TEST_F(MeasureTest, StopsAtTheBudget) {
  device_.duration_ns = [](std::int64_t i, Method) { return i % 2 == 0 ? 1e6 : 2e6; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.budget = absl::Milliseconds(30), .schedule = {}}));

  EXPECT_EQ(m.timing.stop, StopReason::kBudget);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(20));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy));
}

TEST_F(MeasureTest, IsNeverEmpty) {
  device_.duration_ns = [](auto, auto) { return 5e9; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.budget = absl::Milliseconds(1), .schedule = {}}));

  EXPECT_THAT(m.timing.samples_ns, ElementsAre(5e9));
  EXPECT_EQ(m.timing.statistics.ci_low, std::nullopt);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy));
}

TEST_F(MeasureTest, FollowsASchedule) {
  ASSERT_OK_AND_ASSIGN(
      const Measurement m,
      Go({.schedule = Schedule{.wait = 1, .warmup = 2, .active = 3, .repeat = 4}}));

  EXPECT_EQ(m.timing.stop, StopReason::kSchedule);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(12));
  EXPECT_EQ(m.timing.warmups, 12);
  EXPECT_EQ(m.launches, 24);
}

TEST_F(MeasureTest, CancelEndsItWithTheSamplesSoFar) {
  cancelled_at_ = clock_.Now() + absl::Milliseconds(65);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.interruption, StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_EQ(m.timing.stop, StopReason::kInterrupted);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(5));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kNoisy, Flag::kInterrupted));
  EXPECT_THAT(live_, SizeIs(5));
}

TEST_F(MeasureTest, CancelWhileWarmingUpStillGivesASample) {
  cancelled_at_ = clock_.Now();

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.interruption, StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_THAT(m.timing.samples_ns, SizeIs(1));
}

TEST_F(MeasureTest, TheDeadlineEndsIt) {
  deadline_ = clock_.Now() + absl::Milliseconds(63);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.interruption, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("deadline")));
  EXPECT_THAT(m.timing.samples_ns, SizeIs(3));
  EXPECT_THAT(m.flags, Contains(Flag::kInterrupted));
}

TEST_F(MeasureTest, TheKernelTimeLimitCountsAllLaunchesWarmUpIncluded) {
  kernel_time_limit_ = absl::Milliseconds(64);

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.interruption, ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_EQ(m.launches, 64);
  EXPECT_THAT(m.timing.samples_ns, SizeIs(4));
}

TEST_F(MeasureTest, WhatLiesBetweenLaunchesHasALimitTooAndKeepsItsSamples) {
  kernel_time_limit_ = absl::Milliseconds(100);
  prepare_time_ = absl::Milliseconds(50);
  MeasureOptions options;
  options.schedule.emplace().active = 1'000'000;

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go(options));

  EXPECT_THAT(m.interruption, ReasonIs("WORK_TIME_LIMIT"));
  EXPECT_GT(m.timing.samples_ns.size(), 3u);
  EXPECT_LT(m.launches, 100) << "the launches alone were within their limit";
}

TEST_F(MeasureTest, EachLaunchSaysSinceWhenItRunsUntilItEnds) {
  std::atomic<std::int64_t> since_ns{0};
  const LaunchWatch watch{.clock = clock_, .since_ns = since_ns};
  std::vector<std::int64_t> during, between;
  const auto launch = [&] {
    during.push_back(since_ns - absl::ToUnixNanos(clock_.Now()));
    return launch_;
  };
  const auto prepare = [&] {
    between.push_back(since_ns);
    return absl::OkStatus();
  };
  const Target target = {.launch = launch, .prepare = prepare, .watch = &watch};
  EXPECT_THAT(LaunchOnce(device_, target), IsOk());
  EXPECT_THAT(Measure(device_, {.schedule = Schedule{.active = 3}}, target,
                      {.clock = clock_,
                       .cancelled = [] { return false; },
                       .yields = [] { return false; },
                       .on_samples = [](std::int64_t, std::span<const double>, bool) {}}),
              IsOk());
  launch_ = absl::InternalError("broken");
  EXPECT_THAT(LaunchOnce(device_, target), StatusIs(absl::StatusCode::kInternal, "broken"));
  EXPECT_THAT(during, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(between, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(since_ns, 0);
}

TEST_F(MeasureTest, PreparesBeforeEveryLaunch) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.l2 = L2State::kColdClean, .schedule = {}}));

  EXPECT_EQ(prepares_, m.launches);
  EXPECT_THAT(device_.prepared, SizeIs(m.launches));
  EXPECT_THAT(device_.prepared, Each(L2State::kColdClean));
  EXPECT_EQ(m.timing.l2, L2State::kColdClean);
}

TEST_F(MeasureTest, SendsSamplesAboutEveryFiftyMilliseconds) {
  device_.duration_ns = [](std::int64_t i, Method) { return i % 2 == 0 ? 9e6 : 11e6; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.max_samples = 20, .schedule = {}}));

  EXPECT_EQ(live_, m.timing.samples_ns);
  EXPECT_GE(batches_, 4);
  EXPECT_LE(batches_, 5);
}

TEST_F(MeasureTest, FasterThanPhysicsIsImpossible) {
  device_.roofline = {.ns = 2e6, .basis = "bytes over 1 GB/s"};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, ElementsAre(Flag::kImpossible));
  EXPECT_EQ(m.timing.roofline_ns, 2e6);
  EXPECT_EQ(m.timing.roofline_basis, "bytes over 1 GB/s");
}

TEST_F(MeasureTest, APeakIsMeasuredOnceMoreBeforeAResultIsImpossible) {
  device_.roofline = {.ns = 2e6, .basis = "bytes over 1 GB/s"};
  device_.roofline_again = Device::Roofline{.ns = 0.5e6, .basis = "bytes over 4 GB/s"};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));
  ASSERT_OK_AND_ASSIGN(const Measurement once,
                       LaunchOnce(device_, {.launch = [] { return absl::OkStatus(); },
                                            .prepare = [] { return absl::OkStatus(); }}));

  EXPECT_THAT(m.flags, IsEmpty());
  EXPECT_EQ(m.timing.roofline_basis, "bytes over 4 GB/s");
  EXPECT_THAT(once.flags, IsEmpty());
  EXPECT_TRUE(once.timing.sharing_unknown) << "nobody looked";
}

TEST_F(MeasureTest, APeakThatIsNotBeatenIsNotMeasuredAgain) {
  device_.roofline = {.ns = 0.9e6, .basis = "bytes over 1 GB/s"};
  device_.roofline_again = Device::Roofline{.ns = 0.5e6, .basis = "bytes over 4 GB/s"};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_EQ(m.timing.roofline_basis, "bytes over 1 GB/s");
}

TEST_F(MeasureTest, KeepsTheDevicesStateBeforeAndAfter) {
  device_.conditions = {.sharing_unknown = true,
                        .state = DeviceState{.power_watts = 300, .clock_reasons = {}}};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  ASSERT_TRUE(m.timing.before && m.timing.after);
  EXPECT_EQ(m.timing.before->power_watts, 300);
  EXPECT_TRUE(m.timing.sharing_unknown);
  EXPECT_THAT(m.flags, IsEmpty());
}

TEST_F(MeasureTest, ADeviceThatLoadsLazilyIsFirstLaunchedByPlainEvents) {
  device_.lazy = true;

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.max_samples = 3, .schedule = Schedule{.active = 3}}));

  EXPECT_THAT(device_.launches, ElementsAre(Method::kEventPair, Method::kIsolated,
                                            Method::kIsolated, Method::kIsolated));
  EXPECT_EQ(m.timing.warmups, 1);
  EXPECT_EQ(m.launches, 4);
  EXPECT_EQ(device_.new_launches, 1);
}

TEST_F(MeasureTest, ALaunchReturnsBeforeItsWorkHasEnded) {
  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.max_samples = 3, .schedule = Schedule{.active = 3}}));
  EXPECT_EQ(m.last_end_ns - m.last_return_ns, 1'000'000);
  EXPECT_GT(m.last_return_ns, m.first_start_ns);
}

TEST_F(MeasureTest, BackToBackCannotFindAColdCache) {
  device_.known = {Method::kBackToBack};
  EXPECT_THAT(Go({.method = Method::kBackToBack, .l2 = L2State::kColdDirty, .schedule = {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("measure.l2")));
  EXPECT_THAT(Go({.method = Method::kBackToBack, .schedule = {}}), IsOk());
}

TEST_F(MeasureTest, TellsTheDevicesConditions) {
  device_.conditions = {.throttled = true, .shared = true};

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({}));

  EXPECT_THAT(m.flags, ElementsAre(Flag::kThrottled, Flag::kSharedDevice));
}

TEST_F(MeasureTest, CountsEachLaunchOfASlope) {
  device_.known = {Method::kBackToBack};
  device_.launches_each = 50;
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kBackToBack, .schedule = {}}));
  EXPECT_EQ(m.timing.warmups, 61);
  EXPECT_EQ(m.launches, 71 * 50);
}

TEST_F(MeasureTest, ASlopeThatCannotBeginWithinTheLimitIsRefused) {
  device_.known = {Method::kBackToBack};
  for (const auto& [first_ms, then_ms, slopes] :
       {std::tuple(40.0, 40.0, false), {40.0, 10.0, true}, {10.0, 40.0, true}}) {
    SCOPED_TRACE(absl::StrCat(first_ms, " ", then_ms));
    device_.launches.clear();
    live_.clear();
    live_warmups_.clear();
    device_.duration_ns = [&, first = first_ms, then = then_ms](std::int64_t i, Method) {
      return 1e6 * (i == 0 ? first : then);
    };
    kernel_time_limit_ = absl::Milliseconds(400);
    const auto m = Go({.method = Method::kBackToBack, .schedule = {}});
    EXPECT_EQ(std::count(device_.launches.begin(), device_.launches.end(), Method::kBackToBack) > 0,
              slopes);
    EXPECT_EQ(std::count(device_.launches.begin(), device_.launches.end(), Method::kEventPair),
              first_ms > 30 ? 2 : 1);
    if (slopes) continue;
    EXPECT_THAT(m, StatusIs(absl::StatusCode::kDeadlineExceeded,
                            HasSubstr("11 launches, of 40ms each; the limit")));
    EXPECT_THAT(m.status(), ReasonIs("KERNEL_TIME_LIMIT"));
  }
}

TEST_F(MeasureTest, ASlopeIsNotBegunThatTheDeadlineOrTheLimitCutsOff) {
  device_.known = {Method::kBackToBack};
  const auto fails_after_one = [&](absl::string_view why) {
    device_.launches.clear();
    EXPECT_THAT(Go({.method = Method::kBackToBack, .schedule = {}}),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr(why)));
    EXPECT_THAT(device_.launches, Each(Method::kEventPair));
    return device_.launches.size() == 1;
  };
  device_.duration_ns = [](std::int64_t, Method) { return 25e9; };
  kernel_time_limit_ = absl::Seconds(30);
  EXPECT_TRUE(fails_after_one("the limit of all launches is 30s")) << "two are beyond it";
  device_.duration_ns = [](std::int64_t, Method) { return 1e9; };
  deadline_ = clock_.Now() + absl::Seconds(5);
  fails_after_one("the call's deadline comes before that");
}

TEST_F(MeasureTest, TheFloorIsThatOfTheIsolatedMethodAlone) {
  device_.facts.launch_floor_ns = 40;

  ASSERT_OK_AND_ASSIGN(const Measurement isolated, Go({}));
  live_.clear();
  ASSERT_OK_AND_ASSIGN(const Measurement pair, Go({.method = Method::kEventPair, .schedule = {}}));

  EXPECT_EQ(isolated.timing.method_floor_ns, 40);
  EXPECT_EQ(pair.timing.method_floor_ns, 0);
}

TEST_F(MeasureTest, HostSyncTeachesWhatTheFirstCallCosts) {
  device_.duration_ns = [](std::int64_t i, Method) { return i == 0 ? 9e6 : 1e6; };

  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kHostSync, .schedule = {}}));

  EXPECT_EQ(m.timing.warmups, 0);
  EXPECT_EQ(m.timing.samples_ns[0], 9e6);
  EXPECT_THAT(m.flags, Contains(Flag::kTeachingMethod));
}

TEST_F(MeasureTest, EventPairTeachesFiveWarmUps) {
  ASSERT_OK_AND_ASSIGN(const Measurement m, Go({.method = Method::kEventPair, .schedule = {}}));

  EXPECT_EQ(m.timing.warmups, 5);
  EXPECT_FALSE(m.timing.warmup_flat);
  EXPECT_THAT(device_.launches, Each(Method::kEventPair));
  EXPECT_THAT(m.flags, ElementsAre(Flag::kTeachingMethod));
}

TEST_F(MeasureTest, RefusesAMethodThatTheDeviceDoesNotHave) {
  device_.facts.name = "cpu";

  EXPECT_THAT(Go({.method = Method::kDeviceTime, .schedule = {}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device 'cpu'")));
  EXPECT_THAT(device_.launches, IsEmpty());
}

TEST_F(MeasureTest, ALaunchThatFailsEndsIt) {
  launch_ = absl::ResourceExhaustedError("no memory");

  EXPECT_THAT(Go({}), StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
}

TEST_F(MeasureTest, OneLaunchIsOneSampleWithoutAnInterval) {
  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       LaunchOnce(device_, {.launch = [] { return absl::OkStatus(); },
                                            .prepare = [] { return absl::OkStatus(); }}));

  EXPECT_EQ(m.timing.stop, StopReason::kSingleLaunch);
  EXPECT_THAT(m.timing.samples_ns, ElementsAre(1e6));
  EXPECT_EQ(m.timing.statistics.median, 1e6);
  EXPECT_EQ(m.timing.statistics.ci_low, std::nullopt);
  EXPECT_EQ(m.launches, 1);
  EXPECT_THAT(m.flags, IsEmpty());
}

TEST_F(MeasureTest, OneLaunchOnABareDeviceIsTimedByPlainEventsAndSaysSo) {
  device_.known = {Method::kEventPair};

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       LaunchOnce(device_, {.launch = [] { return absl::OkStatus(); },
                                            .prepare = [] { return absl::OkStatus(); }}));

  EXPECT_EQ(m.timing.method, Method::kEventPair);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kTeachingMethod));
}

TEST_F(MeasureTest, OneLaunchThatWaitedForTheDeviceIsNotRunTwice) {
  device_.refusals[Method::kIsolated] = WithReason(absl::AbortedError("waited"), "LAUNCH_WAITED");
  int launched = 0;
  const auto launch = [&] {
    ++launched;
    return absl::OkStatus();
  };
  const auto prepare = [] { return absl::OkStatus(); };

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       LaunchOnce(device_, {.launch = launch, .prepare = prepare}));

  EXPECT_EQ(launched, 1);
  EXPECT_EQ(m.timing.method, Method::kHostSync);
  EXPECT_THAT(m.flags, ElementsAre(Flag::kTeachingMethod));
  EXPECT_GT(m.timing.samples_ns[0], 0);
  EXPECT_THAT(Go({}), StatusIs(absl::StatusCode::kAborted, "waited"));
}

}  // namespace
}  // namespace gridclock
