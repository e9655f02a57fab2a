#include "server/metrics/run_log.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

Job JobOf(JobId id) {
  Job job;
  job.id = id;
  return job;
}

JobResult OneLaunch(double ns) {
  JobResult result;
  result.outcome.emplace();
  result.outcome->variant = "simd";
  result.outcome->timing.emplace();
  result.outcome->timing->samples_ns = {ns};
  result.outcome->phases = {{PhaseKind::kQueued, 0, 5}};
  result.outcome->flags = {Flag::kNoisy};
  return result;
}

TEST(RunLogTest, ARunCanBeReadByItsNumber) {
  RunLog log;
  log.Add(log.TrailOf("square", "cpu"), JobOf(7), OneLaunch(1500), "ok", kStart);
  const std::optional<RunRecord> run = log.Find(7);
  ASSERT_TRUE(run.has_value());
  EXPECT_EQ(run->kernel, "square");
  EXPECT_EQ(run->variant, "simd");
  EXPECT_EQ(run->device, "cpu");
  EXPECT_EQ(run->outcome, "ok");
  EXPECT_EQ(run->statistics.median, 1500);
  EXPECT_THAT(run->phases, ElementsAre(Phase{PhaseKind::kQueued, 0, 5}));
  EXPECT_THAT(run->flags, ElementsAre(Flag::kNoisy));
  EXPECT_FALSE(log.Find(8).has_value());
}

TEST(RunLogTest, KeepsTheLast200NewestFirst) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  for (JobId id = 1; id <= 450; ++id) log.Add(trail, JobOf(id), OneLaunch(1), "ok", kStart);
  const Activity activity = log.Read(kStart);
  ASSERT_THAT(activity.runs, SizeIs(200));
  EXPECT_EQ(activity.runs.front().id, 450);
  EXPECT_EQ(activity.runs.back().id, 251);
  EXPECT_FALSE(log.Find(250).has_value());
  EXPECT_EQ(log.Find(251)->id, 251);
  EXPECT_EQ(log.Find(450)->id, 450);
  EXPECT_EQ(activity.kernels[0].runs, 450);
}

TEST(RunLogTest, ReadsAsManyRunsAsAreShownAndTellsOfTheOthers) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  for (JobId id = 1; id <= 450; ++id) log.Add(trail, JobOf(id), OneLaunch(1), "ok", kStart);
  const Activity activity = log.Read(kStart, /*most_runs=*/20);
  ASSERT_THAT(activity.runs, SizeIs(20));
  EXPECT_EQ(activity.runs.front().id, 450);
  EXPECT_EQ(activity.runs.back().id, 431);
  EXPECT_EQ(activity.runs_kept, 200);
  EXPECT_THAT(log.Read(kStart, /*most_runs=*/0).runs, IsEmpty());
}

TEST(RunLogTest, OfANumberThatCameAgainTheLastRunIsFound) {
  RunLog log;
  const auto add = [&](JobId id, const std::string& kernel) {
    log.Add(log.TrailOf(kernel, "cpu"), JobOf(id), OneLaunch(1), "ok", kStart);
  };
  add(1, "gelu");
  for (JobId id = 2; id <= 199; ++id) add(id, "gelu");
  add(1, "square");
  EXPECT_EQ(log.Find(1)->kernel, "square");
  add(200, "gelu");  // In the place of the first.
  EXPECT_EQ(log.Find(1)->kernel, "square");
}

TEST(RunLogTest, ARunThatAScrapeNamedOutlivesTheLast200) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  const auto add = [&](JobId id) { log.Add(trail, JobOf(id), OneLaunch(1), "ok", kStart); };
  add(1);
  add(2);
  log.Keep(*log.Find(1));
  for (JobId id = 3; id <= 300; ++id) add(id);
  ASSERT_TRUE(log.Find(1).has_value());
  EXPECT_EQ(log.Find(1)->kernel, "square");
  EXPECT_THAT(log.Find(1)->phases, SizeIs(1));
  EXPECT_FALSE(log.Find(2).has_value());
  EXPECT_THAT(log.Read(kStart).runs, SizeIs(200)) << "no other page shows them";
}

TEST(RunLogTest, OfRunsThatScrapesNamedTheOldestAreDropped) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  for (JobId id = 1; id <= RunLog::kHandedOut + 300; ++id) {
    log.Add(trail, JobOf(id), OneLaunch(1), "ok", kStart);
    log.Keep(*log.Find(id));
    log.Keep(*log.Find(id));  // Each scrape names it again until another comes.
  }
  EXPECT_FALSE(log.Find(300).has_value());
  EXPECT_TRUE(log.Find(301).has_value());
}

TEST(RunLogTest, OneThatNeverRanLeavesNothingOfTheRunBeforeInItsPlace) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  for (JobId id = 1; id <= 200; ++id) log.Add(trail, JobOf(id), OneLaunch(9), "ok", kStart);
  log.Add(trail, JobOf(201), {.status = absl::CancelledError(""), .outcome = {}}, "cancelled",
          kStart);
  const std::optional<RunRecord> run = log.Find(201);
  ASSERT_TRUE(run.has_value());
  EXPECT_FALSE(run->ran);
  EXPECT_EQ(run->variant, "");
  EXPECT_EQ(run->statistics.median, 0);
  EXPECT_THAT(run->phases, IsEmpty());
  EXPECT_THAT(run->flags, IsEmpty());
  EXPECT_EQ(log.Read(kStart).kernels[0].failed, 1);
}

// They would show a value of the client's tensor, and a name that the client chose.
TEST(RunLogTest, TheTextsOfAMismatchAndOfAViolationAreNotKept) {
  RunLog log;
  JobResult result = OneLaunch(1);
  result.outcome->verification = Verification{.mismatches = 1,
                                              .first_mismatch = "y[0]: want 42",
                                              .violations = 2,
                                              .first_violation = "input 'salary' was changed",
                                              .more_mismatches = {"y[1]: want 43"}};
  log.Add(log.TrailOf("square", "cpu"), JobOf(1), result, "mismatch", kStart);
  EXPECT_EQ(log.Find(1)->verification->first_mismatch, "");
  EXPECT_TRUE(log.Find(1)->verification->more_mismatches.empty());
  EXPECT_EQ(log.Find(1)->verification->mismatches, 1);
  EXPECT_EQ(log.Find(1)->verification->first_violation, "");
  EXPECT_EQ(log.Find(1)->verification->violations, 2);
}

TEST(RunLogTest, LatenciesLieInStretchesOfTwoSeconds) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  log.Add(trail, JobOf(1), OneLaunch(100), "ok", kStart);
  log.Add(trail, JobOf(2), OneLaunch(300), "ok", kStart + absl::Seconds(1));
  log.Add(trail, JobOf(3), OneLaunch(700), "ok", kStart + absl::Seconds(6));
  const KernelActivity kernel = log.Read(kStart + absl::Seconds(8)).kernels[0];
  ASSERT_THAT(kernel.slots, SizeIs(60));
  EXPECT_EQ(kernel.slots[55].runs, 2);
  EXPECT_EQ(kernel.slots[55].least, 100);
  EXPECT_EQ(kernel.slots[55].most, 300);
  EXPECT_EQ(kernel.slots[55].sum, 400);
  EXPECT_EQ(kernel.slots[56].runs, 0);
  EXPECT_EQ(kernel.slots[58].runs, 1);
  EXPECT_DOUBLE_EQ(kernel.runs_per_second, 0.3);
}

TEST(RunLogTest, RunsWithoutATimeOfTheKernelCountForTheRateAlone) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  JobResult taught = OneLaunch(9e9);
  taught.outcome->timing->method = Method::kHostSync;
  log.Add(trail, JobOf(1), taught, "ok", kStart);
  JobResult impossible = OneLaunch(1);
  impossible.outcome->flags = {Flag::kImpossible};
  log.Add(trail, JobOf(4), impossible, "ok", kStart);
  log.Add(trail, JobOf(2), {.status = absl::CancelledError(""), .outcome = {}}, "cancelled",
          kStart);
  log.Add(trail, JobOf(3), OneLaunch(100), "ok", kStart);
  const KernelActivity kernel = log.Read(kStart + absl::Seconds(2)).kernels[0];
  EXPECT_EQ(kernel.slots[58].ended, 4);
  EXPECT_EQ(kernel.slots[58].runs, 1);
  EXPECT_EQ(kernel.slots[58].most, 100);
  EXPECT_DOUBLE_EQ(kernel.runs_per_second, 0.4);
}

TEST(RunLogTest, QuantilesAreThoseOfTheLastTwoMinutes) {
  constexpr double kBounds[] = {1};
  Histogram histogram(kBounds);
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu", &histogram);
  log.Add(trail, JobOf(1), OneLaunch(8e9), "ok", kStart);
  histogram.Observe(8);
  EXPECT_NEAR(log.Read(kStart).kernels[0].p50_ns, 8e9, 8e8);

  const absl::Time later = kStart + absl::Minutes(3);
  log.Add(trail, JobOf(2), OneLaunch(1e9), "ok", later);
  histogram.Observe(1);
  const KernelActivity kernel = log.Read(later).kernels[0];
  EXPECT_NEAR(kernel.p50_ns, 1e9, 1e8);
  ASSERT_THAT(kernel.buckets, SizeIs(1));
  EXPECT_EQ(kernel.buckets[0].launches, 1);

  const KernelActivity idle = log.Read(later + absl::Minutes(3)).kernels[0];
  EXPECT_EQ(idle.p50_ns, 0);
  EXPECT_THAT(idle.buckets, IsEmpty());
  EXPECT_EQ(idle.runs, 2);
}

// 3.000007312 s lies in a bucket from 2.83 to 3.08 s.
TEST(RunLogTest, AQuantileLiesBetweenTheFastestLaunchAndTheSlowest) {
  constexpr double kBounds[] = {1};
  Histogram histogram(kBounds);
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("spin", "cpu", &histogram);
  const auto add = [&](JobId id, double ns, absl::Time now) {
    log.Add(trail, JobOf(id), OneLaunch(ns), "ok", now);
    histogram.Observe(ns * 1e-9);
  };
  add(1, 1e6, kStart);
  add(2, 9e9, kStart);
  const absl::Time later = kStart + absl::Seconds(120);
  add(3, 3'000'007'312, later);
  const KernelActivity one = log.Read(later).kernels[0];
  EXPECT_EQ(one.p50_ns, 3'000'007'312) << "of this window's launches, not of those before";
  EXPECT_EQ(one.fastest_ns, 3'000'007'312);
  EXPECT_EQ(one.slowest_ns, 3'000'007'312);
  ASSERT_THAT(one.buckets, SizeIs(1));
  EXPECT_EQ(one.buckets[0].upper_ns, 3'000'007'312);

  for (JobId id = 4; id <= 1000; ++id) add(id, 3'050'000'000, later);
  const KernelActivity many = log.Read(later).kernels[0];
  EXPECT_GE(many.p50_ns, 3'000'007'312);
  EXPECT_LE(many.p50_ns, 3'050'000'000);
  EXPECT_EQ(many.p99_ns, 3'050'000'000);
  EXPECT_EQ(many.fastest_ns, 3'000'007'312);
  EXPECT_EQ(many.slowest_ns, 3'050'000'000);
}

TEST(RunLogTest, TheFastestAndTheSlowestAreOfLaunchesNotOfRuns) {
  constexpr double kBounds[] = {1};
  Histogram histogram(kBounds);
  RunLog log;
  JobResult result = OneLaunch(1);
  result.outcome->timing->samples_ns = {2e9, 3e9, 7e9};
  result.outcome->timing->statistics.median = 3e9;
  log.Add(log.TrailOf("spin", "cpu", &histogram), JobOf(1), result, "ok", kStart);
  histogram.ObserveAll(result.outcome->timing->samples_ns, 1e-9);
  const KernelActivity kernel = log.Read(kStart).kernels[0];
  EXPECT_EQ(kernel.fastest_ns, 2e9);
  EXPECT_EQ(kernel.slowest_ns, 7e9);
}

// As in a measurement's own statistics: 0.99 to the power of 458 is more than 1 %.
TEST(RunLogTest, QuantilesFarOutWantEnoughLaunchesToTellThem) {
  constexpr double kBounds[] = {1};
  Histogram histogram(kBounds);
  RunLog log;
  log.Add(log.TrailOf("square", "cpu", &histogram), JobOf(1), OneLaunch(1e9), "ok", kStart);
  const auto after = [&](int launches) {
    for (int i = 0; i < launches; ++i) histogram.Observe(1);
    return log.Read(kStart).kernels[0];
  };
  const KernelActivity few = after(43);
  EXPECT_NEAR(few.p50_ns, 1e9, 1e8);
  EXPECT_EQ(few.p90_ns, 0);
  EXPECT_EQ(few.p99_ns, 0);
  const KernelActivity more = after(1);
  EXPECT_NEAR(more.p90_ns, 1e9, 1e8);
  EXPECT_EQ(more.p99_ns, 0);
  EXPECT_EQ(after(458 - 44).p99_ns, 0);
  EXPECT_NEAR(after(1).p99_ns, 1e9, 1e8);
}

TEST(RunLogTest, WhatIsOlderThanTwoMinutesIsForgotten) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  log.Add(trail, JobOf(1), OneLaunch(100), "ok", kStart);
  const Activity later = log.Read(kStart + absl::Minutes(3));
  for (const LatencySlot& slot : later.kernels[0].slots) EXPECT_EQ(slot.runs, 0);
  log.Add(trail, JobOf(2), OneLaunch(100), "ok", kStart + absl::Hours(1));
  const Activity latest = log.Read(kStart + absl::Hours(1));
  EXPECT_EQ(std::ranges::count(latest.kernels[0].slots, 1, &LatencySlot::runs), 1);
}

TEST(RunLogTest, AClockThatGoesBackIsNoDisaster) {
  RunLog log;
  RunLog::Trail& trail = log.TrailOf("square", "cpu");
  log.Add(trail, JobOf(1), OneLaunch(100), "ok", kStart);
  const absl::Time earlier = kStart - absl::Hours(5);
  log.Add(trail, JobOf(2), OneLaunch(100), "ok", earlier);
  log.Add(trail, JobOf(3), OneLaunch(300), "ok", earlier + absl::Seconds(2));
  const Activity activity = log.Read(earlier + absl::Seconds(4));
  EXPECT_THAT(activity.runs, SizeIs(3));
  const KernelActivity& kernel = activity.kernels[0];
  EXPECT_EQ(kernel.slots[57].most, 100);
  EXPECT_EQ(kernel.slots[58].most, 300);
  EXPECT_EQ(std::ranges::count(kernel.slots, 1, &LatencySlot::runs), 2);
  EXPECT_DOUBLE_EQ(kernel.runs_per_second, 0.2);
}

TEST(RunLogTest, TheLastReadingOfADeviceIsKept) {
  RunLog log;
  JobResult result = OneLaunch(1);
  result.outcome->timing->after = DeviceState{.temperature_celsius = 42, .clock_reasons = {}};
  log.Add(log.TrailOf("square", "cuda:0"), JobOf(1), result, "ok", kStart);
  log.Add(log.TrailOf("square", "cuda:0"), JobOf(2), OneLaunch(1), "ok", kStart);
  EXPECT_EQ(log.Read(kStart).readings.at("cuda:0").state.temperature_celsius, 42);
  Job guests = JobOf(3);
  guests.program = std::make_shared<JobProgram>();
  result.outcome->timing->after->temperature_celsius = 999;
  log.Add(log.TrailOf("user", "cuda:0"), guests, result, "ok", kStart);
  EXPECT_EQ(log.readings().at("cuda:0").state.temperature_celsius, 42);
}

}  // namespace
}  // namespace gridclock
