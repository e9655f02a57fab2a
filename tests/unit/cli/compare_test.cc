#include "client/cli/compare.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

namespace gridclock::cli {
namespace {

using ::testing::ElementsAre;

template <typename T>
Difference Of(DType dtype, const std::vector<T>& got, const std::vector<T>& want,
              double tolerance) {
  const TensorSpec spec{.dtype = dtype, .shape = {static_cast<std::int64_t>(got.size())}};
  return Compare(spec, std::as_bytes(std::span(got)), std::as_bytes(std::span(want)), tolerance);
}

TEST(Compare, HowFarAndHowMany) {
  const Difference found = Of<float>(DType::kF32, {1, 2.5F, 4}, {1, 2, 4}, 1e-5);
  EXPECT_EQ(found.values, 3);
  EXPECT_EQ(found.mismatches, 1);
  EXPECT_DOUBLE_EQ(found.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(found.max_rel, 0.25);
  EXPECT_EQ(found.max_ulp, 1U << 21);
  EXPECT_THAT(found.first, ElementsAre("[1]: want 2, got 2.5"));
}

TEST(Compare, SmallOnesAmongLargeOnesHaveTheirTolerance) {
  EXPECT_EQ(Of<float>(DType::kF32, {1000, 0.001F}, {1000, 0.002F}, 1e-5).mismatches, 0);
  EXPECT_EQ(Of<float>(DType::kF32, {0.001F, 0.001F}, {0.001F, 0.002F}, 1e-5).mismatches, 1);
}

TEST(Compare, ASpikeExcusesNothing) {
  EXPECT_EQ(Of<float>(DType::kF32, {1e6F, 5, 5, 5}, {1e6F, 1, 1, 1}, 1e-5).mismatches, 3);
}

TEST(Compare, EachRowHasItsScale) {
  const TensorSpec spec{.dtype = DType::kF32, .shape = {2, 2}};
  const std::vector<float> want = {1e6F, 1e6F, 1, 1}, got = {1e6F, 1e6F + 1, 1, 2};
  const Difference found =
      Compare(spec, std::as_bytes(std::span(got)), std::as_bytes(std::span(want)), 1e-5);
  EXPECT_THAT(found.first, ElementsAre("[1,1]: want 1, got 2"));
}

TEST(Compare, NeighboursAcrossZeroAreNear) {
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Of<float>(DType::kF32, {least}, {-least}, 1).max_ulp, 2U);
  EXPECT_EQ(Of<std::uint16_t>(DType::kBF16, {0x3F81}, {0x3F80}, 1.6e-2).max_ulp, 1U);
  EXPECT_EQ(Of<float>(DType::kF32, {-0.0F}, {0.0F}, 0).mismatches, 0);
}

TEST(Compare, StepsBetweenSignsOfAnF64) {
  EXPECT_EQ(Of<double>(DType::kF64, {2}, {-2}, 1).max_ulp, std::uint64_t{1} << 63);
  EXPECT_GT(Of<double>(DType::kF64, {1e300}, {-1e300}, 1).max_ulp,
            Of<double>(DType::kF64, {1.5}, {-1.5}, 1).max_ulp);
}

TEST(Compare, NanAndInfinityAreEqualToThemselvesAlone) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Difference found =
      Of<double>(DType::kF64, {nan, nan, 1, inf, -inf, inf}, {-nan, 1, nan, inf, inf, 1e308}, 1);
  EXPECT_EQ(found.mismatches, 4);
  EXPECT_EQ(found.nan_mismatches, 2);
}

TEST(Compare, IntegersAreEqualOrNot) {
  constexpr std::int64_t kBig = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(Of<std::int64_t>(DType::kI64, {kBig}, {kBig - 1}, 1).mismatches, 1);
  EXPECT_EQ(Of<std::int64_t>(DType::kI64, {kBig}, {kBig}, 0).mismatches, 0);
  EXPECT_EQ(ToleranceOf(DType::kI32), 0);
}

TEST(Compare, PlacesHaveAllTheirIndices) {
  const TensorSpec spec{.dtype = DType::kU8, .shape = {2, 3}};
  const std::vector<std::uint8_t> got = {0, 0, 0, 0, 9, 0}, want(6, 0);
  Difference found =
      Compare(spec, std::as_bytes(std::span(got)), std::as_bytes(std::span(want)), 0);
  EXPECT_THAT(found.first, ElementsAre("[1,1]: want 0, got 9"));
  found.Add(found);
  EXPECT_EQ(found.values, 12);
  EXPECT_EQ(found.mismatches, 2);
}

}  // namespace
}  // namespace gridclock::cli
