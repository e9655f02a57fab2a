#include "server/metrics/latency_window.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::IsEmpty;

constexpr double kBounds[] = {1};
const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

std::uint64_t Sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

class LatencyWindowTest : public ::testing::Test {
 protected:
  void See(absl::Duration at) {
    window_.Touch(kStart + at);
    histogram_.Observe(1);
  }
  std::uint64_t SeenAt(absl::Duration at) const { return Sum(window_.Read(kStart + at)); }

  Histogram histogram_{kBounds};
  LatencyWindow window_{&histogram_};
};

TEST_F(LatencyWindowTest, KnowsNothingBeforeAnythingCame) {
  EXPECT_THAT(window_.Read(kStart), IsEmpty());
}

TEST_F(LatencyWindowTest, WhatWasCountedBeforeIsNotOfLate) {
  histogram_.Observe(1);
  See(absl::ZeroDuration());
  EXPECT_EQ(SeenAt(absl::ZeroDuration()), 1);
}

TEST_F(LatencyWindowTest, EachStretchLeavesAfterTwoMinutes) {
  for (int second = 0; second < 120; second += 5) See(absl::Seconds(second));
  EXPECT_EQ(SeenAt(absl::Seconds(119)), 24);
  EXPECT_EQ(SeenAt(absl::Seconds(120)), 22);
  EXPECT_EQ(SeenAt(absl::Seconds(229)), 2);
  EXPECT_EQ(SeenAt(absl::Seconds(230)), 0);
}

TEST_F(LatencyWindowTest, AfterALongSilenceOnlyTheNewCounts) {
  for (int i = 0; i < 100; ++i) See(absl::Seconds(i));
  See(absl::Hours(7));
  EXPECT_EQ(SeenAt(absl::Hours(7)), 1);
}

TEST_F(LatencyWindowTest, AClockThatGoesBackIsNoDisaster) {
  See(absl::ZeroDuration());
  See(-absl::Hours(5));
  EXPECT_EQ(SeenAt(-absl::Hours(5)), 1);
  See(absl::Hours(1));
  EXPECT_EQ(SeenAt(absl::Hours(1)), 1);
}

TEST(SharedLatencyWindowTest, WithoutAHistogramOfItsOwnNothingIsKnown) {
  LatencyWindow window(nullptr);
  window.Touch(kStart);
  EXPECT_THAT(window.Read(kStart), IsEmpty());
}

}  // namespace
}  // namespace gridclock
