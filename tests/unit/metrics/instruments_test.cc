#include "server/metrics/instruments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics/catalogue.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;

constexpr double kBounds[] = {1, 2.5, 5};

TEST(TallyTest, SumsWhatAllThreadsAdd) {
  Tally tally;
  {
    std::vector<std::jthread> threads;
    threads.reserve(12);
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

// A search would be sure; the way from a native bucket has to find the same.
TEST(HistogramTest, EachBoundOfTheCatalogueIsFoundFromBothSides) {
  int histograms = 0;
  for (const MetricSpec& spec : MetricSpecs()) {
    if (spec.type != MetricType::kHistogram) continue;
    ++histograms;
    SCOPED_TRACE(std::string(spec.name));
    const std::span<const double> bounds = spec.bounds;
    ASSERT_FALSE(bounds.empty());
    Histogram histogram(bounds);
    for (const double bound : bounds) {
      histogram.Observe(std::nextafter(bound, 0));
      histogram.Observe(bound);
      histogram.Observe(std::nextafter(bound, 1e9));
    }
    std::vector<std::uint64_t> want(bounds.size() + 1, 3);
    want.front() = 2;
    want.back() = 1;
    EXPECT_EQ(histogram.Read().counts, want);
  }
  EXPECT_GE(histograms, 6);
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

TEST(HistogramTest, NativeBucketsEndAtEighthsOfAnOctave) {
  EXPECT_EQ(NativeUpperBound(NativeBucketOf(1.0)), 1.0);
  EXPECT_EQ(NativeUpperBound(NativeBucketOf(0.5)), 0.5);
  EXPECT_DOUBLE_EQ(NativeUpperBound(NativeBucketOf(1.0001)), std::exp2(1.0 / 8));
  for (std::size_t i = 1; i + 1 < kNativeBuckets; ++i) {
    EXPECT_EQ(NativeBucketOf(NativeUpperBound(i)), i);
    EXPECT_EQ(NativeBucketOf(std::nextafter(NativeUpperBound(i), 1e9)), i + 1);
  }
  EXPECT_EQ(NativeBucketOf(0), 0);
  EXPECT_EQ(NativeBucketOf(-5), 0);
  EXPECT_EQ(NativeBucketOf(1e-300), 0);
  EXPECT_EQ(NativeBucketOf(1e300), kNativeBuckets - 1);
}

TEST(HistogramTest, BothKindsOfBucketsCountEveryValue) {
  Histogram histogram(kBounds);
  std::vector<double> values;
  values.reserve(4000);
  for (int i = 0; i < 4000; ++i) values.push_back(std::exp2(i / 37.0 - 50));
  histogram.ObserveAll(values, 1);
  const Histogram::Snapshot read = histogram.Read();
  std::vector<std::uint64_t> want(4), want_native(kNativeBuckets);
  for (const double value : values) {
    ++want[std::lower_bound(std::begin(kBounds), std::end(kBounds), value) - std::begin(kBounds)];
    ++want_native[NativeBucketOf(value)];
  }
  EXPECT_EQ(read.counts, want);
  EXPECT_EQ(read.native, want_native);
}

// A shard whose sum is 0 may have counted all the same.
TEST(HistogramTest, ValuesThatAddUpToNothingAreCounted) {
  Histogram zero(kBounds), both(kBounds), none(kBounds);
  zero.Observe(0);
  for (const double value : {-3.0, 3.0}) both.Observe(value);
  EXPECT_THAT(zero.Read().counts, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(both.Read().counts, ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(both.Read().sum, 0);
  EXPECT_THAT(none.Read().counts, ElementsAre(0, 0, 0, 0));
}

TEST(HistogramTest, ABucketKeepsTheLastRunThatWasMarked) {
  Histogram histogram(kBounds);
  histogram.Mark(2, 7);
  histogram.Mark(2.5, 8);
  histogram.Mark(100, 9);
  EXPECT_THAT(histogram.Read().runs, ElementsAre(0, 8, 0, 9));
}

TEST(HistogramTest, LosesNothingWhenThreadsMeet) {
  Histogram histogram(kBounds);
  {
    std::vector<std::jthread> threads;
    threads.reserve(12);
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
