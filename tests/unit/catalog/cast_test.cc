// Casts to the f8 types, of every f16 number, against the list of all numbers that such a type has.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "proto/types/convert.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

// A type of eight bits: a sign, an exponent, and so many bits behind the point.
struct Eight {
  DType dtype;
  int mantissa_bits, bias;
  int numbers;  // Of either sign, from 0 on; the bits beyond stand for infinity or NaN.
};
constexpr Eight kE4M3{DType::kF8E4M3, 3, 7, 127};
constexpr Eight kE5M2{DType::kF8E5M2, 2, 15, 124};

// What the bits of a positive number say.
double ValueOf(const Eight& type, int bits) {
  const int exponent = bits >> type.mantissa_bits;
  const double fraction = std::ldexp(bits & ((1 << type.mantissa_bits) - 1), -type.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - type.bias)
                       : std::ldexp(1 + fraction, exponent - type.bias);
}

// The bits of the number nearest to x >= 0; of two, those that end in 0; of the largest beyond it.
int NearestBits(const Eight& type, double x) {
  int best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int bits = 0; bits < type.numbers; ++bits) {
    const double away = std::fabs(ValueOf(type, bits) - x);
    if (away > least || (away == least && (bits & 1) != 0)) continue;
    least = away;
    best = bits;
  }
  return std::isinf(x) ? type.numbers - 1 : best;
}

absl::StatusOr<std::vector<std::uint8_t>> Cast(const void* x, DType dtype, std::int64_t n,
                                               const Eight& type) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  std::vector<std::uint8_t> y(static_cast<std::size_t>(n));
  const RegisteredKernel& cast = *registry.Find("cast");
  const OperandValue value{.is_list = false, .tensors = {{dtype, {n}}}};
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(cast.spec, {{"x", value}}, {{"to", type.dtype}}));
  TbbThreads threads(2);
  GC_RETURN_IF_ERROR(LaunchFastest(cast, binding, {const_cast<void*>(x), y.data()}, threads));
  return y;
}

absl::StatusOr<std::vector<std::uint8_t>> CastAll(const Eight& type) {
  std::vector<std::uint16_t> x(1 << 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint16_t>(i);
  return Cast(x.data(), DType::kF16, 1 << 16, type);
}

class EveryF16 : public testing::TestWithParam<Eight> {};

TEST_P(EveryF16, GoesToTheNearestNumberOrTheLargest) {
  const Eight type = GetParam();
  ASSERT_OK_AND_ASSIGN(const std::vector<std::uint8_t> cast, CastAll(type));
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const double x = F16ToFloat(static_cast<std::uint16_t>(bits));
    const int got = cast[static_cast<std::size_t>(bits)];
    if (std::isnan(x)) {
      EXPECT_GT(got & 0x7F, type.numbers - 1 + (type.dtype == DType::kF8E5M2 ? 1 : 0)) << bits;
      continue;
    }
    const int sign = std::signbit(x) ? 0x80 : 0;
    ASSERT_EQ(got, sign | NearestBits(type, std::fabs(x))) << x;
  }
}

// Of all 2^32, and beside each border between two numbers of the type the floats next to it.
TEST_P(EveryF16, AndManyF32DoAsTheTypesDefinitionSays) {
  const Eight type = GetParam();
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 4099) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (int bits = 0; bits + 1 < type.numbers; ++bits) {
    const auto border = static_cast<float>((ValueOf(type, bits) + ValueOf(type, bits + 1)) / 2);
    for (const float beside : {std::nextafterf(border, 0), border, std::nextafterf(border, 1e9F)}) {
      x.push_back(beside);
      x.push_back(-beside);
    }
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<std::uint8_t> cast,
                       Cast(x.data(), DType::kF32, static_cast<std::int64_t>(x.size()), type));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int want = type.dtype == DType::kF8E4M3 ? F8E4M3FromDouble(x[i]) : F8E5M2FromDouble(x[i]);
    ASSERT_EQ(cast[i], want) << x[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Cast, EveryF16, testing::Values(kE4M3, kE5M2),
                         [](const testing::TestParamInfo<Eight>& info) {
                           return std::string(Name(info.param.dtype));
                         });

}  // namespace
}  // namespace gridclock
