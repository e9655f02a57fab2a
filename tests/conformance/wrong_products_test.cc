// The suite must catch wrong matrix products and distances: each test below is a mistake that
// people make.
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_reference.h"
#include "kernels/catalog/matmul_sizes.h"
#include "tests/conformance/wrong.h"

namespace gridclock {
namespace {

using matmul::Sizes;
using matmul::SizesOf;
using testing::HasSubstr;

enum class Mistake : std::uint8_t {
  kNone,
  kTf32,          // Factors are cut to 10 bits behind the point.
  kBf16,          // To 7.
  kNarrowSum,     // Sums are rounded to 16 bits as they grow.
  kCutOff,        // The result, to 16 bits, instead of rounded.
  kMissingTail,   // What is left of K after strips of 8.
  kFirstMatrix,   // b of the first matrix for all of a batch.
  kNoBias,        //
  kBiasOfRow,     // Along the rows of c.
  kBiasAfter,     // After gelu.
  kOtherForm,     // tanh for none, none for tanh.
  kRoundedFirst,  // The sum is rounded to 16 bits before bias and gelu.
  kProductForm,   // |a|^2 + |b|^2 - 2ab
  kNoRoot,        //
  kSigned,        // Differences instead of their magnitudes.
  kOtherNorm,     // p = 2 for 1, 1 for 2.
  kFlushed,       // Of a sum of squares what is below the normal numbers.
};

float CutToTf32(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  if (std::isfinite(x)) bits &= 0xFFFFE000U;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

std::int64_t DepthOf(const Sizes& s, Mistake mistake) {
  return mistake == Mistake::kMissingTail && s.k > 8 ? s.k / 8 * 8 : s.k;
}

template <Mistake kMistake, typename T>
Wide<T> SumOf(const Call& call, const Sizes& s, std::int64_t unit) {
  const std::int64_t matrix = unit / (s.m * s.n), i = unit / s.n % s.m, j = unit % s.n;
  const T* a = call.In<T>(0) + matrix * s.m * s.k + i * s.a.row;
  const T* b =
      call.In<T>(1) + (kMistake == Mistake::kFirstMatrix ? 0 : matrix * s.k * s.n) + j * s.b.column;
  Wide<T> sum = 0;
  for (std::int64_t k = 0; k < DepthOf(s, kMistake); ++k) {
    Wide<T> left = Widen(a[k * s.a.column]), right = Widen(b[k * s.b.row]);
    if (kMistake == Mistake::kTf32) {
      left = CutToTf32(left);
      right = CutToTf32(right);
    }
    if (kMistake == Mistake::kBf16) {
      left = Widen(Narrow<BF16>(left));
      right = Widen(Narrow<BF16>(right));
    }
    sum += left * right;
    if (kMistake == Mistake::kNarrowSum) sum = Widen(Narrow<T>(sum));
  }
  return kMistake == Mistake::kRoundedFirst ? Wide<T>{Widen(Narrow<T>(sum))} : sum;
}

template <Mistake kMistake, typename T = float>
absl::Status Product(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t unit = 0; unit < Count(call); ++unit) {
    const Wide<T> sum = SumOf<kMistake, T>(call, s, unit);
    call.Out<T>(0)[unit] = Narrow<T>(sum);
    if constexpr (kMistake == Mistake::kCutOff) call.Out<T>(0)[unit] = CutOff<T>(sum);
  }
  return absl::OkStatus();
}

double GeluOf(double x, bool tanh) {
  if (std::isinf(x) && x < 0) return -0.0;
  const double inner =
      tanh ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)) : std::erf(x * M_SQRT1_2);
  return 0.5 * x * (1 + inner);
}

template <Mistake kMistake, typename T = float>
absl::Status ProductBiasGelu(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  const bool tanh =
      (call.binding->Word("approximate") == "tanh") != (kMistake == Mistake::kOtherForm);
  for (std::int64_t unit = 0; unit < Count(call); ++unit) {
    const std::int64_t place =
        kMistake == Mistake::kBiasOfRow ? unit / s.n % s.m % s.n : unit % s.n;
    const double bias = kMistake == Mistake::kNoBias ? 0 : Widen(call.In<T>(2)[place]);
    const double sum = SumOf<kMistake, T>(call, s, unit);
    const double y =
        kMistake == Mistake::kBiasAfter ? GeluOf(sum, tanh) + bias : GeluOf(sum + bias, tanh);
    call.Out<T>(0)[unit] = Narrow<T>(static_cast<Wide<T>>(y));
  }
  return absl::OkStatus();
}

template <Mistake kMistake>
absl::Status Distances(const Call& call) {
  const Sizes s = SizesOf(*call.binding, false, true, "D");
  const bool root = (call.binding->F64("p") == 2) != (kMistake == Mistake::kOtherNorm);
  for (std::int64_t unit = 0; unit < Count(call); ++unit) {
    const std::int64_t row_of_b =
        kMistake == Mistake::kFirstMatrix ? unit % s.n : unit / (s.m * s.n) * s.n + unit % s.n;
    const float* a = call.In<float>(0) + unit / s.n * s.k;
    const float* b = call.In<float>(1) + row_of_b * s.k;
    float sum = 0, squares = 0, product = 0;
    for (std::int64_t k = 0; k < DepthOf(s, kMistake); ++k) {
      const float difference = a[k] - b[k];
      squares += a[k] * a[k] + b[k] * b[k];
      product += a[k] * b[k];
      sum += root                           ? difference * difference
             : kMistake == Mistake::kSigned ? difference
                                            : std::fabs(difference);
    }
    if (kMistake == Mistake::kFlushed && root && !std::isnormal(sum) && std::isfinite(sum)) sum = 0;
    if (kMistake == Mistake::kProductForm && root) {
      const float left = squares - 2 * product;
      sum = left < 0 ? 0 : left;
    }
    call.Out<float>(0)[unit] = root && kMistake != Mistake::kNoRoot ? std::sqrt(sum) : sum;
  }
  return absl::OkStatus();
}

TEST(Products, FindsNothingWrongWithRightOnes) {
  EXPECT_EQ(ProblemsOf("matmul", Product<Mistake::kNone>), "");
  EXPECT_EQ(ProblemsOf("matmul_bias_gelu", ProductBiasGelu<Mistake::kNone>), "");
  EXPECT_EQ(ProblemsOf("cdist", Distances<Mistake::kNone>), "");
}

TEST(Products, CatchesFactorsOfTf32) {
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kTf32>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("matmul_bias_gelu", ProductBiasGelu<Mistake::kTf32>),
              HasSubstr("differ"));
}

TEST(Products, OfTf32AreRightAsSuchAndNothingElseIs) {
  constexpr auto kMagnitude = matmul::MagnitudeOfTf32;
  const auto large = [&](LaunchFn launch) {
    return LargeProblemsOf("matmul", launch, /*misaligned=*/false, kMagnitude);
  };
  EXPECT_EQ(large(Product<Mistake::kTf32>), "");
  EXPECT_THAT(large(Product<Mistake::kBf16>), HasSubstr("differ"));
  EXPECT_THAT(large(Product<Mistake::kMissingTail>), HasSubstr("differ"));
}

TEST(Products, CatchesSumsThatAreKeptInSixteenBits) {
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kNarrowSum, BF16>, DType::kBF16),
              HasSubstr("differ"));
  EXPECT_THAT(
      FirstProblemOf("matmul_bias_gelu", ProductBiasGelu<Mistake::kNarrowSum, F16>, DType::kF16),
      HasSubstr("differ"));
}

TEST(Products, CatchesSumsThatAreCutOffInsteadOfRounded) {
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kCutOff, BF16>, DType::kBF16),
              HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kCutOff, F16>, DType::kF16),
              HasSubstr("differ"));
}

TEST(Products, CatchesAMissingTail) {
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kMissingTail>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("cdist", Distances<Mistake::kMissingTail>), HasSubstr("differ"));
}

TEST(Products, CatchesABatchThatStaysAtItsFirstMatrix) {
  EXPECT_THAT(FirstProblemOf("matmul", Product<Mistake::kFirstMatrix>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("cdist", Distances<Mistake::kFirstMatrix>), HasSubstr("differ"));
}

TEST(Products, CatchesABiasThatIsLeftOutOrLiesElsewhere) {
  for (const LaunchFn wrong :
       {ProductBiasGelu<Mistake::kNoBias>, ProductBiasGelu<Mistake::kBiasOfRow>,
        ProductBiasGelu<Mistake::kBiasAfter>}) {
    EXPECT_THAT(FirstProblemOf("matmul_bias_gelu", wrong), HasSubstr("differ"));
  }
}

TEST(Products, CatchesTheOtherFormOfGelu) {
  EXPECT_THAT(FirstProblemOf("matmul_bias_gelu", ProductBiasGelu<Mistake::kOtherForm>),
              HasSubstr("differ"));
}

TEST(Products, CatchesASumThatIsRoundedBeforeGelu) {
  EXPECT_THAT(FirstProblemOf("matmul_bias_gelu", ProductBiasGelu<Mistake::kRoundedFirst, BF16>,
                             DType::kBF16),
              HasSubstr("differ"));
}

TEST(Products, CatchesDistancesByTheProductForm) {
  EXPECT_THAT(FirstProblemOf("cdist", Distances<Mistake::kProductForm>), HasSubstr("differ"));
}

TEST(Products, CatchesSmallDistancesWhoseSquaresAreFlushed) {
  EXPECT_THAT(FirstProblemOf("cdist", Distances<Mistake::kFlushed>), HasSubstr("differ"));
}

TEST(Products, CatchesADistanceOfAnotherNorm) {
  for (const LaunchFn wrong :
       {Distances<Mistake::kNoRoot>, Distances<Mistake::kSigned>, Distances<Mistake::kOtherNorm>}) {
    EXPECT_THAT(FirstProblemOf("cdist", wrong), HasSubstr("differ"));
  }
}

}  // namespace
}  // namespace gridclock
