#include "kernels/timing/statistics.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridclock {
namespace {

using ::testing::DoubleNear;
using ::testing::Optional;
using ::testing::Pair;

TEST(MedianRanks, AreThoseOfTheTables) {
  EXPECT_THAT(MedianRanks(6, 0.95), Optional(Pair(1, 6)));
  EXPECT_THAT(MedianRanks(10, 0.95), Optional(Pair(2, 9)));
  EXPECT_THAT(MedianRanks(20, 0.95), Optional(Pair(6, 15)));
  EXPECT_THAT(MedianRanks(100, 0.95), Optional(Pair(40, 61)));
  EXPECT_THAT(MedianRanks(10, 0.99), Optional(Pair(1, 10)));
}

TEST(MedianRanks, NeedEnoughSamples) {
  EXPECT_EQ(MedianRanks(1, 0.95), std::nullopt);
  EXPECT_EQ(MedianRanks(5, 0.95), std::nullopt);
  EXPECT_EQ(MedianRanks(7, 0.99), std::nullopt);
}

TEST(MedianRanks, ChangeSmoothlyWhereTheNormalLawTakesOver) {
  const auto exact = MedianRanks(2000, 0.95), normal = MedianRanks(2001, 0.95);
  ASSERT_TRUE(exact && normal);
  EXPECT_NEAR(static_cast<double>(exact->first), static_cast<double>(normal->first), 1);
  EXPECT_THAT(MedianRanks(1'000'000, 0.95), Optional(Pair(499'020, 500'981)));
}

TEST(Summarise, OneSample) {
  const Statistics s = Summarise(std::vector<double>{7}, 0.95);
  EXPECT_EQ(s.median, 7);
  EXPECT_EQ(s.min, 7);
  EXPECT_EQ(s.max, 7);
  EXPECT_EQ(s.stddev, 0);
  EXPECT_EQ(s.ci_low, std::nullopt);
  EXPECT_EQ(RelativeInterval(s), std::nullopt);
}

TEST(Summarise, OrderDoesNotMatter) {
  const Statistics s = Summarise(std::vector<double>{4, 1, 3, 2, 10, 6, 5, 9, 8, 7}, 0.95);
  EXPECT_EQ(s.median, 5.5);
  EXPECT_EQ(s.q1, 3.25);
  EXPECT_EQ(s.q3, 7.75);
  EXPECT_EQ(s.mean, 5.5);
  EXPECT_THAT(s.stddev, DoubleNear(3.02765, 1e-5));
  EXPECT_THAT(s.ci_low, Optional(2.0));
  EXPECT_THAT(s.ci_high, Optional(9.0));
  EXPECT_THAT(RelativeInterval(s), Optional(DoubleNear(7 / 5.5, 1e-12)));
}

TEST(Summarise, TellsTheTailFrom459SamplesOn) {
  std::vector<double> samples(458, 1.0);
  EXPECT_EQ(Summarise(samples, 0.95).p99, std::nullopt);
  samples.push_back(1.0);
  EXPECT_THAT(Summarise(samples, 0.95).p99, Optional(1.0));
}

}  // namespace
}  // namespace gridclock
