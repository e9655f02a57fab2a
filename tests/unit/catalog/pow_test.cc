// Powers of numbers of every size and of what is no number, against pow of the C library.
#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

// Each f32 whose last 16 bits are 0: both zeros, subnormal numbers, infinities and NaN among them.
std::vector<float> NumbersOfEverySize() {
  std::vector<float> x(1 << 16);
  for (std::uint32_t i = 0; i < 1 << 16; ++i) x[i] = std::bit_cast<float>(i << 16);
  return x;
}

absl::StatusOr<std::vector<float>> Pow(std::vector<float> x, double exponent) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  const RegisteredKernel& pow = *registry.Find("pow");
  const auto n = static_cast<std::int64_t>(x.size());
  const OperandValue value{.is_list = false, .tensors = {{DType::kF32, {n}}}};
  GC_ASSIGN_OR_RETURN(const Binding binding,
                      Bind(pow.spec, {{"x", value}}, {{"exponent", exponent}}));
  std::vector<float> y(x.size());
  TbbThreads threads(2);
  GC_RETURN_IF_ERROR(LaunchFastest(pow, binding, {x.data(), y.data()}, threads));
  return y;
}

// The same, or its neighbour; an infinity has the largest number beside it.
bool IsWithinOneUlp(float got, float want) {
  return std::signbit(got) == std::signbit(want) &&
         std::abs(std::bit_cast<std::int32_t>(got) - std::bit_cast<std::int32_t>(want)) <= 1;
}

class PowOfEverySize : public testing::TestWithParam<double> {};

TEST_P(PowOfEverySize, IsThatOfTheLibrary) {
  const double exponent = GetParam();
  const std::vector<float> x = NumbersOfEverySize();
  ASSERT_OK_AND_ASSIGN(const std::vector<float> y, Pow(x, exponent));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(std::pow(double{x[i]}, exponent));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y[i])) << x[i] << " gave " << y[i];
    } else {
      ASSERT_TRUE(IsWithinOneUlp(y[i], want)) << x[i] << " gave " << y[i] << ", not " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FractionsAndWholeNumbersOfEitherSign, PowOfEverySize,
                         testing::Values(0.3, -0.3, 0.5, -0.5, 2.5, 300.7, 9, -9, 10, -10,
                                         9007199254740991.0, 1e300, -1e300, 1e-300, 0.0));

}  // namespace
}  // namespace gridclock
