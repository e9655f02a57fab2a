// The suite must catch wrong kernels of rows and of reductions: each test below is a mistake that
// people make.
#include <algorithm>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_sizes.h"
#include "tests/conformance/wrong.h"

namespace gridclock {
namespace {

using reduce::FirstTerm;
using reduce::Sizes;
using reduce::SizesOf;
using testing::HasSubstr;

enum class Mistake : std::uint8_t {
  kNone,
  kNoMaximum,      // exp overflows.
  kLogOfSoftmax,   // log(0) where the exponential underflows.
  kShortVariance,  // mean(x^2) - mean(x)^2
  kOneLess,        // A variance of N - 1.
  kNoEps,          //
  kEpsOutside,     // Of the root.
  kNoBias,         //
  kOneWeight,      // weight[0] for all.
  kNarrowSum,      // Sums are rounded to 16 bits as they grow.
  kMissingTail,    // What is left of a row after packs of 4.
  kStartAtZero,    // A maximum of negative numbers is 0.
  kDropNaN,        //
  kLastPlace,      // Of equal elements the last.
  kPlaceInTensor,  // In memory, not along the dimension.
  kAxisOff,        // The dimension before.
  kAllOfTensor,    // Divided by the tensor's elements.
  kRoundedSum,     // Divided after the sum was rounded.
};

std::int64_t LengthOf(const Call& call, Mistake mistake) {
  const std::int64_t n = call.binding->Dim("N");
  return mistake == Mistake::kMissingTail && n > 4 ? n / 4 * 4 : n;
}

// A sum that is as narrow as T, or wide.
template <typename T>
Wide<T> Kept(Wide<T> sum, Mistake mistake) {
  return mistake == Mistake::kNarrowSum ? Wide<T>{Widen(Narrow<T>(sum))} : sum;
}

template <Mistake kMistake, typename T>
void LogSoftmaxRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  const std::int64_t length = LengthOf(call, kMistake);
  W largest = kMistake == Mistake::kStartAtZero ? 0 : -std::numeric_limits<W>::infinity();
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, W{Widen(x[i])});
  if (kMistake == Mistake::kNoMaximum) largest = 0;
  W sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    sum = Kept<T>(sum + std::exp(Widen(x[i]) - largest), kMistake);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const W right = Widen(x[i]) - largest - std::log(sum);
    y[i] = Narrow<T>(kMistake == Mistake::kLogOfSoftmax
                         ? std::log(std::exp(Widen(x[i]) - largest) / sum)
                         : right);
  }
}

template <typename T>
Wide<T> MeanOf(const T* x, std::int64_t n, Mistake mistake) {
  Wide<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum = Kept<T>(sum + Widen(x[i]), mistake);
  return sum / static_cast<Wide<T>>(n);
}

template <typename T>
Wide<T> VarianceOf(const T* x, std::int64_t n, Wide<T> mean, Mistake mistake) {
  using W = Wide<T>;
  const bool is_short = mistake == Mistake::kShortVariance;
  W squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const W distance = Widen(x[i]) - (is_short ? W{0} : mean);
    squares = Kept<T>(squares + distance * distance, mistake);
  }
  if (is_short) return std::max(W{0}, squares / static_cast<W>(n) - mean * mean);
  return squares / static_cast<W>(mistake == Mistake::kOneLess ? n - 1 : n);
}

template <Mistake kMistake, typename T>
void LayerNormRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  const auto eps = static_cast<W>(call.binding->F64("eps"));
  const W mean = MeanOf(x, LengthOf(call, kMistake), kMistake);
  const W variance = VarianceOf(x, LengthOf(call, kMistake), mean, kMistake);
  const W root = std::sqrt(variance + (kMistake == Mistake::kNoEps ? W{0} : eps));
  for (std::int64_t i = 0; i < n; ++i) {
    const W weight = Widen(call.In<T>(1)[kMistake == Mistake::kOneWeight ? 0 : i]);
    const W bias = kMistake == Mistake::kNoBias ? W{0} : W{Widen(call.In<T>(2)[i])};
    y[i] = Narrow<T>((Widen(x[i]) - mean) / root * weight + bias);
  }
}

template <Mistake kMistake, typename T>
void RmsNormRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  const auto eps = static_cast<W>(call.binding->F64("eps"));
  const W squares = VarianceOf(x, LengthOf(call, kMistake), W{0}, kMistake);
  const W root =
      kMistake == Mistake::kEpsOutside ? std::sqrt(squares) + eps : std::sqrt(squares + eps);
  for (std::int64_t i = 0; i < n; ++i) {
    const W weight = Widen(call.In<T>(1)[kMistake == Mistake::kOneWeight ? 0 : i]);
    y[i] = Narrow<T>(Widen(x[i]) / root * weight);
  }
}

template <auto kRow, typename T = float>
absl::Status EachRow(const Call& call) {
  const std::int64_t n = call.binding->Dim("N");
  for (std::int64_t r = 0; n > 0 && r < Count(call) / n; ++r) {
    kRow(call, call.In<T>(0) + r * n, call.Out<T>(0) + r * n, n);
  }
  return absl::OkStatus();
}

template <Mistake kMistake>
std::string LogSoftmaxWith() {
  return ProblemsOf("log_softmax", EachRow<LogSoftmaxRow<kMistake, float>>);
}
template <Mistake kMistake>
std::string LayerNormWith() {
  return ProblemsOf("layernorm", EachRow<LayerNormRow<kMistake, float>>);
}
template <Mistake kMistake>
std::string RmsNormWith() {
  return ProblemsOf("rmsnorm", EachRow<RmsNormRow<kMistake, float>>);
}

TEST(Rows, FindsNothingWrongWithRightOnes) {
  EXPECT_EQ(LogSoftmaxWith<Mistake::kNone>(), "");
  EXPECT_EQ(LayerNormWith<Mistake::kNone>(), "");
  EXPECT_EQ(RmsNormWith<Mistake::kNone>(), "");
}

TEST(Rows, CatchesALogSoftmaxWithoutTheMaximum) {
  EXPECT_THAT(LogSoftmaxWith<Mistake::kNoMaximum>(), HasSubstr("differ"));
}

TEST(Rows, CatchesTheLogarithmOfASoftmax) {
  EXPECT_THAT(LogSoftmaxWith<Mistake::kLogOfSoftmax>(), HasSubstr("differ"));
}

TEST(Rows, CatchesAMaximumThatStartsAtZero) {
  EXPECT_THAT(LogSoftmaxWith<Mistake::kStartAtZero>(), HasSubstr("differ"));
}

TEST(Rows, CatchesASumWithoutItsTail) {
  EXPECT_THAT(LogSoftmaxWith<Mistake::kMissingTail>(), HasSubstr("differ"));
  EXPECT_THAT(LayerNormWith<Mistake::kMissingTail>(), HasSubstr("differ"));
  EXPECT_THAT(RmsNormWith<Mistake::kMissingTail>(), HasSubstr("differ"));
}

TEST(Rows, CatchesSumsThatAreKeptInSixteenBits) {
  EXPECT_THAT(ProblemsOf("log_softmax", EachRow<LogSoftmaxRow<Mistake::kNarrowSum, BF16>, BF16>,
                         {DType::kBF16}),
              HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("layernorm", EachRow<LayerNormRow<Mistake::kNarrowSum, BF16>, BF16>,
                         {DType::kBF16}),
              HasSubstr("differ"));
  EXPECT_THAT(
      ProblemsOf("rmsnorm", EachRow<RmsNormRow<Mistake::kNarrowSum, F16>, F16>, {DType::kF16}),
      HasSubstr("differ"));
}

TEST(Rows, CatchesAVarianceThatIsADifferenceOfLargeNumbers) {
  EXPECT_THAT(LayerNormWith<Mistake::kShortVariance>(), HasSubstr("differ"));
}

TEST(Rows, CatchesAVarianceOfOneElementLess) {
  EXPECT_THAT(LayerNormWith<Mistake::kOneLess>(), HasSubstr("differ"));
}

TEST(Rows, CatchesAMissingEps) {
  EXPECT_THAT(LayerNormWith<Mistake::kNoEps>(), HasSubstr("differ"));
}

TEST(Rows, CatchesAnEpsOutsideOfTheRoot) {
  EXPECT_THAT(RmsNormWith<Mistake::kEpsOutside>(), HasSubstr("differ"));
}

TEST(Rows, CatchesAMissingBias) {
  EXPECT_THAT(LayerNormWith<Mistake::kNoBias>(), HasSubstr("differ"));
}

TEST(Rows, CatchesOneWeightForAll) {
  EXPECT_THAT(LayerNormWith<Mistake::kOneWeight>(), HasSubstr("differ"));
  EXPECT_THAT(RmsNormWith<Mistake::kOneWeight>(), HasSubstr("differ"));
}

TEST(Rows, CatchesALayerNormOfTheRootMeanSquare) {
  EXPECT_THAT(
      ProblemsOf("rmsnorm", EachRow<[](const Call& call, const float* x, float* y, std::int64_t n) {
                   const float mean = MeanOf(x, n, Mistake::kNone);
                   const float variance = VarianceOf(x, n, mean, Mistake::kNone);
                   for (std::int64_t i = 0; i < n; ++i) {
                     y[i] = (x[i] - mean) / std::sqrt(variance + 1e-6F) * call.In<float>(1)[i];
                   }
                 }>),
      HasSubstr("differ"));
}

// Where the terms of an output begin, right but for the dimension.
template <Mistake kMistake>
std::int64_t BeginOf(const Sizes& s, std::int64_t output) {
  return kMistake == Mistake::kAxisOff ? output * s.n : FirstTerm(s, output);
}
template <Mistake kMistake>
std::int64_t StrideOf(const Sizes& s) {
  return kMistake == Mistake::kAxisOff ? 1 : s.inner;
}

template <Mistake kMistake, typename T = float>
absl::Status Mean(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
    const T* x = call.In<T>(0) + BeginOf<kMistake>(s, i);
    Wide<T> sum = 0;
    for (std::int64_t k = 0; k < (s.n == 0 ? 0 : LengthOf(call, kMistake)); ++k) {
      sum = Kept<T>(sum + Widen(x[k * StrideOf<kMistake>(s)]), kMistake);
    }
    if (kMistake == Mistake::kRoundedSum) sum = Widen(Narrow<T>(sum));
    const std::int64_t count = kMistake == Mistake::kAllOfTensor ? s.outer * s.n * s.inner : s.n;
    call.Out<T>(0)[i] = Narrow<T>(sum / static_cast<Wide<T>>(count));
  }
  return absl::OkStatus();
}

// Writes the largest, or its place.
template <Mistake kMistake, bool kPlace>
absl::Status Largest(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
    const float* x = call.In<float>(0) + BeginOf<kMistake>(s, i);
    const std::int64_t stride = StrideOf<kMistake>(s);
    float largest = kMistake == Mistake::kStartAtZero ? 0 : x[0];
    std::int64_t place = 0;
    for (std::int64_t k = 1; k < LengthOf(call, kMistake); ++k) {
      const float v = x[k * stride];
      const bool first_nan = v != v && largest == largest;
      const bool beats = kMistake == Mistake::kLastPlace ? v >= largest : v > largest;
      if (!beats && (kMistake == Mistake::kDropNaN || !first_nan)) continue;
      largest = v;
      place = k;
    }
    if (kMistake == Mistake::kPlaceInTensor) place = place * s.inner;
    if (kPlace) {
      call.Out<std::int64_t>(0)[i] = place;
    } else {
      call.Out<float>(0)[i] = largest;
    }
  }
  return absl::OkStatus();
}

TEST(Reductions, FindsNothingWrongWithRightOnes) {
  EXPECT_EQ(ProblemsOf("mean", Mean<Mistake::kNone>), "");
  EXPECT_EQ(ProblemsOf("max", Largest<Mistake::kNone, false>), "");
  EXPECT_EQ(ProblemsOf("argmax", Largest<Mistake::kNone, true>), "");
}

TEST(Reductions, CatchesTheWrongAxis) {
  EXPECT_THAT(ProblemsOf("mean", Mean<Mistake::kAxisOff>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("max", Largest<Mistake::kAxisOff, false>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("argmax", Largest<Mistake::kAxisOff, true>), HasSubstr("differ"));
}

TEST(Reductions, CatchesAMissingTail) {
  EXPECT_THAT(ProblemsOf("mean", Mean<Mistake::kMissingTail>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("max", Largest<Mistake::kMissingTail, false>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("argmax", Largest<Mistake::kMissingTail, true>), HasSubstr("differ"));
}

TEST(Reductions, CatchesAMeanOfSixteenBits) {
  EXPECT_THAT(ProblemsOf("mean", Mean<Mistake::kNarrowSum, BF16>, {DType::kBF16}),
              HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("mean", Mean<Mistake::kRoundedSum, F16>, {DType::kF16}),
              HasSubstr("differ"));
}

TEST(Reductions, CatchesAMeanOverTheWholeTensor) {
  EXPECT_THAT(ProblemsOf("mean", Mean<Mistake::kAllOfTensor>), HasSubstr("differ"));
}

TEST(Reductions, CatchesAMaximumThatStartsAtZero) {
  EXPECT_THAT(ProblemsOf("max", Largest<Mistake::kStartAtZero, false>), HasSubstr("differ"));
}

TEST(Reductions, CatchesAMaximumThatLeavesNaNOut) {
  EXPECT_THAT(ProblemsOf("max", Largest<Mistake::kDropNaN, false>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("argmax", Largest<Mistake::kDropNaN, true>), HasSubstr("differ"));
}

TEST(Reductions, CatchesTheLastOfEqualPlaces) {
  EXPECT_THAT(ProblemsOf("argmax", Largest<Mistake::kLastPlace, true>), HasSubstr("differ"));
}

TEST(Reductions, CatchesAPlaceThatIsOneInTheTensor) {
  EXPECT_THAT(ProblemsOf("argmax", Largest<Mistake::kPlaceInTensor, true>), HasSubstr("differ"));
}

}  // namespace
}  // namespace gridclock
