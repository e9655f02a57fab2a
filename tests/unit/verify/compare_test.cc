#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/verify/verify.h"

namespace gridclock {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

Comparison CompareF32(double got, double want) {
  return Compare(got, want, want, DType::kF32, ToleranceFor(DType::kF32, 1));
}

TEST(ToleranceFor, FollowsFromDtypeAndAccumulation) {
  EXPECT_EQ(ToleranceFor(DType::kF32, 1).relative, 0x1p-23);
  EXPECT_EQ(ToleranceFor(DType::kF32, 1).accumulation, 20 * 0x1p-24);
  EXPECT_EQ(ToleranceFor(DType::kF32, 100).relative, 0x1p-23 + 36 * 0x1p-24);
  EXPECT_EQ(ToleranceFor(DType::kF32, 100).accumulation, 56 * 0x1p-24);
  EXPECT_EQ(ToleranceFor(DType::kF64, 1).accumulation, 20 * 0x1p-53);
  EXPECT_EQ(ToleranceFor(DType::kBF16, 1).relative, 0x1p-7);
  EXPECT_EQ(ToleranceFor(DType::kBF16, 1).accumulation, 20 * 0x1p-24);
}

TEST(ToleranceFor, StaysMeaningfulHoweverLongTheSum) {
  const std::int64_t longest = std::int64_t{1} << 40;
  EXPECT_LE(ToleranceFor(DType::kF32, longest).relative, 1e-3);
  EXPECT_EQ(ToleranceFor(DType::kF32, longest).accumulation, 4 * 68 * 0x1p-24);
  EXPECT_EQ(ToleranceFor(DType::kF64, longest).accumulation, 4 * 68 * 0x1p-53);
}

TEST(ToleranceFor, IntegersMustBeExact) {
  const Tolerance exact = ToleranceFor(DType::kI32, 1000);
  EXPECT_EQ(exact.relative + exact.accumulation + exact.absolute, 0);
  EXPECT_TRUE(Compare(5, 5, 5, DType::kI32, exact).ok());
  EXPECT_FALSE(Compare(5, 6, 6, DType::kI32, exact).ok());
  EXPECT_FALSE(Compare(0x1p52, 0x1p52, 0x1p52, DType::kI64, exact).undecided);
  EXPECT_TRUE(Compare(0x1p53, 0x1p53, 0x1p53, DType::kI64, exact).undecided)
      << "2^53 + 1 is the same double";
  EXPECT_FALSE(Compare(0, 1, 1, DType::kBool, ToleranceFor(DType::kBool, 1)).ok());
}

TEST(ToleranceOf, WhatIsRoundedOnceIsTheNearestNumber) {
  const Tolerance bf16 = ToleranceOf(Roundings::kOnce, DType::kBF16, 1);
  const auto ok = [&](double got, double want) {
    return Compare(got, want, want, DType::kBF16, bf16).ok();
  };
  EXPECT_TRUE(ok(1, 1 + 0x1p-8)) << "a tie may go either way";
  EXPECT_TRUE(ok(1 + 0x1p-7, 1 + 0x1p-8));
  EXPECT_TRUE(ok(1, 1 + 0x1p-8 + 0x1p-25)) << "f32 before it made a tie";
  EXPECT_FALSE(ok(1, 1 + 0x1.8p-8)) << "cut off";
  EXPECT_TRUE(ok(0, 0x1p-127));
  EXPECT_FALSE(ok(0, 0x1p-120));
  const Tolerance f32 = ToleranceOf(Roundings::kOnce, DType::kF32, 1);
  EXPECT_TRUE(Compare(1, 1 + 0x1p-24, 1, DType::kF32, f32).ok());
  EXPECT_FALSE(Compare(1, 1 + 0x1.1p-24, 1, DType::kF32, f32).ok());
  const Tolerance f16 = ToleranceOf(Roundings::kOnce, DType::kF16, 1);
  EXPECT_FALSE(Compare(0, 0x1p-24, 0x1p-24, DType::kF16, f16).ok()) << "no flush of f16's";
  EXPECT_TRUE(Compare(kInf, 65520, 65520, DType::kF16, f16).ok()) << "a tie";
  EXPECT_TRUE(Compare(65504, 65520, 65520, DType::kF16, f16).ok()) << "a tie";
  EXPECT_FALSE(Compare(kInf, 65519.9, 65519.9, DType::kF16, f16).ok());
  const Tolerance f64 = ToleranceOf(Roundings::kOnce, DType::kF64, 1);
  EXPECT_FALSE(Compare(1 + 0x1p-52, 1, 1, DType::kF64, f64).ok()) << "the reference has rounded";
}

TEST(ToleranceOf, WhatIsNotRoundedIsEqual) {
  const Tolerance none = ToleranceOf(Roundings::kNone, DType::kF32, 1000);
  EXPECT_TRUE(Compare(0x1p-149, 0x1p-149, 1, DType::kF32, none).ok());
  EXPECT_FALSE(Compare(0, 0x1p-149, 1, DType::kF32, none).ok());
  EXPECT_FALSE(Compare(1 + 0x1p-23, 1, 1, DType::kF32, none).ok());
}

TEST(ToleranceOf, SeveralRoundingsAreThoseOfTheSum) {
  EXPECT_EQ(ToleranceOf(Roundings::kSeveral, DType::kF32, 100).relative,
            ToleranceFor(DType::kF32, 100).relative);
  EXPECT_FALSE(ToleranceOf(Roundings::kOnce, DType::kI32, 1).steps > 0);
}

TEST(ToleranceOf, SumsAreRoundedTo16BitsOnce) {
  const auto compare = [](double got, double want, DType dtype) {
    return Compare(got, want, want, dtype, ToleranceOf(Roundings::kSeveral, dtype, 100));
  };
  EXPECT_TRUE(compare(1, 1 + 0x1p-8, DType::kBF16).ok()) << "a tie";
  EXPECT_FALSE(compare(1, 1 + 0x1.1p-8, DType::kBF16).ok()) << "cut off";
  EXPECT_TRUE(compare(1 + 0x1p-7, 1 + 0x1.1p-8, DType::kBF16).ok());
  EXPECT_FALSE(compare(1, 1 + 0x1.1p-11, DType::kF16).ok()) << "cut off";
  EXPECT_TRUE(compare(1 + 0x1p-10, 1 + 0x1.1p-11, DType::kF16).ok());
}

TEST(ToleranceOf, SubmittedCodeMayRoundTo16BitsOnTheWay) {
  const Tolerance wide = ToleranceOf(Roundings::kSeveral, DType::kBF16, 100, true);
  EXPECT_EQ(wide.relative, ToleranceFor(DType::kBF16, 100).relative);
  EXPECT_EQ(wide.steps, 0);
}

// Each time that they add 16 products to a sum, so that positive ones fall behind.
TEST(ToleranceOf, TensorCoresCutSumsOff) {
  const auto behind = [](double terms, DType dtype) {
    const double want = 1 + 0x1p-8, lost = terms / 32 * 0x1p-24;
    return Compare(1 - lost, want, want, dtype,
                   ToleranceOf(Roundings::kSeveral, dtype, static_cast<std::int64_t>(terms)));
  };
  EXPECT_TRUE(behind(0x1p17, DType::kBF16).ok());
  const Tolerance longest = ToleranceOf(Roundings::kSeveral, DType::kF16, 1 << 30);
  EXPECT_LE(longest.relative, 0x1p-11 + 1e-3) << "no wider than it was";
}

TEST(Compare, WithinAndBeyondTheTolerance) {
  EXPECT_EQ(CompareF32(2, 2).error, 0);
  EXPECT_TRUE(CompareF32(1 + 0x1p-22, 1).ok());
  EXPECT_FALSE(CompareF32(1 + 0x1p-18, 1).ok());
  EXPECT_FALSE(CompareF32(-1, 1).ok());
}

TEST(Compare, AnErrorOfOneIsTheToleranceItself) {
  const Comparison comparison = CompareF32(1 + 0x1p-20, 1);
  EXPECT_NEAR(comparison.error, 0x1p-20 / comparison.tolerance, 1e-12);
}

TEST(Compare, ZeroIsNotASmallNumber) {
  EXPECT_FALSE(CompareF32(0, 1e-20).ok());
  EXPECT_FALSE(Compare(0, 1e-5, 1e-5, DType::kF16, ToleranceFor(DType::kF16, 1)).ok());
  // Below the normal numbers a flush to zero is legal.
  EXPECT_TRUE(CompareF32(0, 1e-39).ok());
}

TEST(Compare, NanEqualsNanAlone) {
  EXPECT_TRUE(CompareF32(kNan, kNan).ok());
  EXPECT_EQ(CompareF32(1, kNan).error, kInf);
  EXPECT_EQ(CompareF32(kNan, 1).error, kInf);
  EXPECT_EQ(CompareF32(kNan, kInf).error, kInf);
}

TEST(Compare, InfinityEqualsTheSameInfinity) {
  EXPECT_TRUE(CompareF32(kInf, kInf).ok());
  EXPECT_FALSE(CompareF32(-kInf, kInf).ok());
  EXPECT_FALSE(CompareF32(kInf, 1).ok());
  EXPECT_FALSE(CompareF32(1, kInf).ok());
}

TEST(Compare, WhatIsTooLargeForTheTypeMayOverflow) {
  EXPECT_TRUE(CompareF32(kInf, 1e39).ok());
  EXPECT_FALSE(CompareF32(-kInf, 1e39).ok());
  EXPECT_FALSE(CompareF32(kInf, 1e38).ok());
  const Tolerance f16 = ToleranceFor(DType::kF16, 1);
  EXPECT_TRUE(Compare(kInf, 65520, 65520, DType::kF16, f16).ok());
  EXPECT_TRUE(Compare(65504, 65520, 65520, DType::kF16, f16).ok());
  EXPECT_TRUE(Compare(448, 1000, 1000, DType::kF8E4M3, ToleranceFor(DType::kF8E4M3, 1)).ok());
}

// gelu(-inf) is -0, and its error rests on x.
TEST(Compare, AScaleWithoutBoundLetsNothingPass) {
  const Tolerance tolerance = ToleranceFor(DType::kF32, 1);
  for (const double scale : {kInf, -kInf, kNan}) {
    EXPECT_FALSE(Compare(3, -0.0, scale, DType::kF32, tolerance).ok()) << scale;
    EXPECT_FALSE(Compare(-kInf, -0.0, scale, DType::kF32, tolerance).ok()) << scale;
    EXPECT_FALSE(Compare(2, 1, scale, DType::kF32, tolerance).ok()) << scale;
    EXPECT_TRUE(Compare(0, -0.0, scale, DType::kF32, tolerance).ok()) << scale;
    EXPECT_TRUE(Compare(1 + 0x1p-22, 1, scale, DType::kF32, tolerance).ok()) << scale;
  }
}

TEST(Compare, CancelledSumsAreHeldAgainstTheirTerms) {
  const Tolerance tolerance = ToleranceFor(DType::kF32, 100);
  // The terms add up to 1e6 in magnitude and to almost nothing in sum.
  EXPECT_TRUE(Compare(1e-3, 0, 1e6, DType::kF32, tolerance).ok());
  EXPECT_FALSE(Compare(1e-3, 0, 1, DType::kF32, tolerance).ok());
}

}  // namespace
}  // namespace gridclock
