#include "kernels/timing/statistics.h"

#include <cmath>
#include <numeric>
#include <random>
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

TEST(Summarise, OrderDoesNotMatterWhereNeighboursAreNotAlike) {
  const Statistics s = Summarise(std::vector<double>{4, 10, 1, 9, 3, 8, 2, 7, 5, 6}, 0.95);
  EXPECT_EQ(s.median, 5.5);
  EXPECT_EQ(s.q1, 3.25);
  EXPECT_EQ(s.q3, 7.75);
  EXPECT_EQ(s.mean, 5.5);
  EXPECT_THAT(s.stddev, DoubleNear(3.02765, 1e-5));
  EXPECT_THAT(s.ci_low, Optional(2.0));
  EXPECT_THAT(s.ci_high, Optional(9.0));
  EXPECT_THAT(RelativeInterval(s), Optional(DoubleNear(7 / 5.5, 1e-12)));
}

// 1 to 10 ten times: in turn, and each value ten times before the next comes.
TEST(Summarise, SamplesThatDriftKnowTheirMedianLess) {
  std::vector<double> turns, drift;
  for (int i = 0; i < 100; ++i) {
    turns.push_back(1 + (i * 7) % 10);
    drift.push_back(1 + i / 10);
  }
  const Statistics in_turn = Summarise(turns, 0.95), drifting = Summarise(drift, 0.95);
  EXPECT_EQ(EffectiveCount(turns), 100);
  EXPECT_THAT(in_turn.ci_low, Optional(4.0));
  EXPECT_THAT(in_turn.ci_high, Optional(7.0));
  EXPECT_LT(EffectiveCount(drift), 6);
  EXPECT_EQ(drifting.median, in_turn.median);
  EXPECT_EQ(drifting.ci_low, std::nullopt) << "less than 6 independent ones";
}

TEST(EffectiveCount, IsOneToAll) {
  EXPECT_EQ(EffectiveCount(std::vector<double>{7}), 1);
  EXPECT_EQ(EffectiveCount(std::vector<double>(50, 7.0)), 50);
  std::vector<double> rising(1000);
  std::iota(rising.begin(), rising.end(), 0.0);
  EXPECT_EQ(EffectiveCount(rising), 5) << "the correlation is taken to be 0.99 at most";
}

// Neighbours that have half in common: a third of them counts. One far off changes nothing.
TEST(EffectiveCount, IsThatOfTheLawWhateverTheOutliers) {
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  std::vector<double> samples;
  double x = 0;
  for (int i = 0; i < 30'000; ++i) {
    x = 0.5 * x + std::sqrt(0.75) * normal(engine);
    samples.push_back(i % 1000 == 0 ? 1e9 : x);
  }
  EXPECT_NEAR(static_cast<double>(EffectiveCount(samples)), 10'000, 700);
}

TEST(Summarise, TellsTheTailFrom459SamplesOn) {
  std::vector<double> samples(458, 1.0);
  EXPECT_EQ(Summarise(samples, 0.95).p99, std::nullopt);
  samples.push_back(1.0);
  EXPECT_THAT(Summarise(samples, 0.95).p99, Optional(1.0));
}

}  // namespace
}  // namespace gridclock
