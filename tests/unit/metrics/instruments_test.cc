#include "server/metrics/instruments.h"

#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::ElementsAre;

constexpr double kBounds[] = {1, 2.5, 5};

TEST(TallyTest, SumsWhatAllThreadsAdd) {
  Tally tally;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 12; ++t) {
      threads.emplace_back([&tally] {
        for (int i = 0; i < 1000; ++i) tally.Add(3);
      });
    }
  }
  EXPECT_EQ(tally.Value(), 36'000);
}

TEST(TallyTest, GoesDownOnAnotherThreadThanItWentUp) {
  Tally tally;
  std::jthread([&tally] { tally.Add(1); }).join();
  std::jthread([&tally] { tally.Add(-1); }).join();
  EXPECT_EQ(tally.Value(), 0);
}

TEST(HistogramTest, UpperBoundsBelongToTheirBucket) {
  Histogram histogram(kBounds);
  for (const double value : {0.0, 1.0, 1.0001, 2.5, 5.0, 5.0001, 1e9}) histogram.Observe(value);
  EXPECT_THAT(histogram.Read().counts, ElementsAre(2, 2, 1, 2));
}

TEST(HistogramTest, ManyAtOnceAreTheSameAsOneByOne) {
  Histogram one_by_one(kBounds);
  Histogram at_once(kBounds);
  const double nanos[] = {1000, 2000, 4000, 8000};
  for (const double value : nanos) one_by_one.Observe(value * 0.001);
  at_once.ObserveAll(nanos, 0.001);
  EXPECT_THAT(at_once.Read().counts, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(at_once.Read().counts, one_by_one.Read().counts);
  EXPECT_DOUBLE_EQ(at_once.Read().sum, 15);
}

TEST(HistogramTest, WhatIsNoNumberLeavesNoTrace) {
  Histogram histogram(kBounds);
  const double values[] = {1, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()};
  histogram.ObserveAll(values, 1);
  histogram.Observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(histogram.Read().sum, 1);
  EXPECT_THAT(histogram.Read().counts, ElementsAre(1, 0, 0, 0));
}

TEST(HistogramTest, LosesNothingWhenThreadsMeet) {
  Histogram histogram(kBounds);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 12; ++t) {
      threads.emplace_back([&histogram] {
        for (int i = 0; i < 1000; ++i) histogram.Observe(2);
      });
    }
  }
  EXPECT_THAT(histogram.Read().counts, ElementsAre(0, 12'000, 0, 0));
  EXPECT_DOUBLE_EQ(histogram.Read().sum, 24'000);
}

}  // namespace
}  // namespace gridclock
