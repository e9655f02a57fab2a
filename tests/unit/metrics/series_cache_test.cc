#include "server/metrics/series_cache.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

TEST(SeriesCacheTest, FindsWhatWasInsertedAndNothingElse) {
  SeriesCache<int> cache;
  ASSERT_TRUE(cache.Insert({"square", "simd", "cpu"}, 7));
  ASSERT_NE(cache.Find({"square", "simd", "cpu"}), nullptr);
  EXPECT_EQ(*cache.Find({"square", "simd", "cpu"}), 7);
  EXPECT_EQ(cache.Find({"square", "simd", "cuda:0"}), nullptr);
  EXPECT_EQ(cache.Find({"square", "naive", "cpu"}), nullptr);
  EXPECT_EQ(cache.Find({"gelu", "simd", "cpu"}), nullptr);
}

TEST(SeriesCacheTest, VariantsThatShareAPlaceAreApart) {
  SeriesCache<int> cache;
  EXPECT_TRUE(cache.Insert({"square", "simd", "cpu"}, 7));
  EXPECT_EQ(cache.Find({"square", "tile", "cpu"}), nullptr);
  EXPECT_TRUE(cache.Insert({"square", "tile", "cpu"}, 8));
  EXPECT_EQ(*cache.Find({"square", "simd", "cpu"}), 7);
  EXPECT_EQ(*cache.Find({"square", "tile", "cpu"}), 8);
}

TEST(SeriesCacheTest, KeepsTheFirstValueOfAKey) {
  SeriesCache<int> cache;
  cache.Insert({"square", "simd", "cpu"}, 7);
  EXPECT_TRUE(cache.Insert({"square", "simd", "cpu"}, 8));
  EXPECT_EQ(*cache.Find({"square", "simd", "cpu"}), 7);
}

TEST(SeriesCacheTest, SaysWhenItIsFullAndStillFinds) {
  SeriesCache<int> cache;
  int held = 0;
  while (cache.Insert({absl::StrCat("k", held), "simd", "cpu"}, held)) ++held;
  EXPECT_EQ(held, 3072);
  EXPECT_EQ(*cache.Find({"k3071", "simd", "cpu"}), 3071);
  EXPECT_EQ(cache.Find({"k3072", "simd", "cpu"}), nullptr);
}

TEST(SeriesCacheTest, ReadersAndWritersMayMeet) {
  SeriesCache<int> cache;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache] {
      for (int i = 0; i < 500; ++i) {
        cache.Insert({absl::StrCat("k", i), "simd", "cpu"}, i);
        EXPECT_EQ(*cache.Find({absl::StrCat("k", i), "simd", "cpu"}), i);
      }
    });
  }
}

}  // namespace
}  // namespace gridclock
