// The suite must catch wrong cumulative sums and transposes: each test below is a mistake that
// people make.
#include <algorithm>
#include <cmath>

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
  kExclusive,    // Without the element itself.
  kNarrowSum,    // The sum is rounded to 16 bits as it grows.
  kAxisOff,      // Along the last dimension, whatever was asked.
  kNoCarry,      // Each piece of 1024 begins at 0.
  kMissingTail,  // What is left after packs of 4 is not written.
  kCutOff,       // To 16 bits, instead of rounded.
  kBounded       // Sums end at 1e30.
};

template <Mistake kMistake, typename T = float>
absl::Status Cumsum(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  const bool off = kMistake == Mistake::kAxisOff;
  const std::int64_t n = kMistake == Mistake::kMissingTail ? s.n / 4 * 4 : s.n;
  for (std::int64_t i = 0; s.n > 0 && i < s.outer * s.inner; ++i) {
    const std::int64_t first = off ? i * s.n : FirstTerm(s, i), stride = off ? 1 : s.inner;
    Wide<T> sum = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      if (kMistake == Mistake::kNoCarry && k % 1024 == 0) sum = 0;
      const Wide<T> before = sum;
      sum += Widen(call.In<T>(0)[first + k * stride]);
      if (kMistake == Mistake::kNarrowSum) sum = Widen(Narrow<T>(sum));
      if (kMistake == Mistake::kBounded && std::isfinite(sum)) sum = std::clamp(sum, -1e30F, 1e30F);
      T& y = call.Out<T>(0)[first + k * stride];
      y = Narrow<T>(kMistake == Mistake::kExclusive ? before : sum);
      if constexpr (kMistake == Mistake::kCutOff) y = CutOff<T>(sum);
    }
  }
  return absl::OkStatus();
}

TEST(Scans, FindsNothingWrongWithARightCumsum) {
  EXPECT_EQ(ProblemsOf("cumsum", Cumsum<Mistake::kNone>), "");
}

TEST(Scans, CatchesACumsumWithoutTheElementItself) {
  EXPECT_THAT(ProblemsOf("cumsum", Cumsum<Mistake::kExclusive>), HasSubstr("differ"));
}

TEST(Scans, CatchesACumsumThatIsKeptInSixteenBits) {
  EXPECT_THAT(ProblemsOf("cumsum", Cumsum<Mistake::kNarrowSum, BF16>, {DType::kBF16}),
              HasSubstr("differ"));
}

TEST(Scans, CatchesSumsThatAreCutOffInsteadOfRounded) {
  EXPECT_THAT(FirstProblemOf("cumsum", Cumsum<Mistake::kCutOff, BF16>, DType::kBF16),
              HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("cumsum", Cumsum<Mistake::kCutOff, F16>, DType::kF16),
              HasSubstr("differ"));
}

TEST(Scans, CatchesACumsumThatEndsBeforeItsTypeDoes) {
  EXPECT_THAT(ProblemsOf("cumsum", Cumsum<Mistake::kBounded>), HasSubstr("differ"));
}

TEST(Scans, CatchesACumsumAlongTheWrongAxis) {
  EXPECT_THAT(ProblemsOf("cumsum", Cumsum<Mistake::kAxisOff>), HasSubstr("differ"));
}

TEST(Scans, CatchesACumsumThatCarriesNothingOn) {
  EXPECT_THAT(LargeProblemsOf("cumsum", Cumsum<Mistake::kNoCarry>), HasSubstr("differ"));
}

TEST(Scans, CatchesACumsumWithoutItsTail) {
  EXPECT_THAT(ProblemsOf("cumsum", Cumsum<Mistake::kMissingTail>), HasSubstr("differ"));
}

// y[q] = x[p], where the index q has the dimensions `i` and `j` of p exchanged; without those that
// `skips` names.
absl::Status Transposed(const Call& call, std::int64_t i, std::int64_t j,
                        bool (*skips)(std::int64_t i, std::int64_t j)) {
  const Shape& from = call.InShape(0);
  const auto rank = static_cast<std::int64_t>(from.size());
  i = (i + rank) % rank;
  j = (j + rank) % rank;
  Shape to = from;
  std::swap(to[static_cast<std::size_t>(i)], to[static_cast<std::size_t>(j)]);
  std::vector<std::int64_t> index(from.size());
  for (std::int64_t element = 0; element < Count(call); ++element) {
    std::int64_t rest = element, place = 0;
    for (std::size_t d = from.size(); d-- > 0; rest /= from[d]) index[d] = rest % from[d];
    if (skips(index[static_cast<std::size_t>(i)], index[static_cast<std::size_t>(j)])) continue;
    std::swap(index[static_cast<std::size_t>(i)], index[static_cast<std::size_t>(j)]);
    for (std::size_t d = 0; d < to.size(); ++d) place = place * to[d] + index[d];
    call.Out<float>(0)[place] = call.In<float>(0)[element];
  }
  return absl::OkStatus();
}

bool Nothing(std::int64_t, std::int64_t) {
  return false;
}

TEST(Scans, FindsNothingWrongWithARightTranspose) {
  EXPECT_EQ(ProblemsOf("transpose",
                       [](const Call& call) {
                         return Transposed(call, call.binding->I64("i"), call.binding->I64("j"),
                                           Nothing);
                       }),
            "");
}

TEST(Scans, CatchesATransposeThatCopies) {
  EXPECT_THAT(
      ProblemsOf("transpose", [](const Call& call) { return Transposed(call, 0, 0, Nothing); }),
      HasSubstr("differ"));
}

TEST(Scans, CatchesATransposeOfTheLastTwoWhateverWasAsked) {
  EXPECT_THAT(
      ProblemsOf("transpose", [](const Call& call) { return Transposed(call, -2, -1, Nothing); }),
      HasSubstr("differ"));
}

TEST(Scans, CatchesATransposeWithoutThePartsOfTiles) {
  EXPECT_THAT(ProblemsOf("transpose",
                         [](const Call& call) {
                           return Transposed(call, call.binding->I64("i"), call.binding->I64("j"),
                                             [](std::int64_t i, std::int64_t) { return i >= 64; });
                         }),
              HasSubstr("differ"));
}

}  // namespace
}  // namespace gridclock
