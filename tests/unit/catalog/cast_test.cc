// Casts to the f8 types, of every f16 number, against the list of all numbers that such a type has;
// and of integers that no double holds.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "kernels/verify/verify.h"
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

// ---- Integers of 64 bits. ----

struct Rounded {
  std::int64_t x;
  double f32, bf16;
};
constexpr std::int64_t k2To53 = std::int64_t{1} << 53, k2To60 = std::int64_t{1} << 60;
constexpr std::int64_t kHalfF32 = std::int64_t{1} << 36, kHalfBF16 = std::int64_t{1} << 52;
// Half a step from the nearest numbers of either type, and one beside it, which a double drops.
const std::vector<Rounded> kRounded = {
    {k2To53 + 1, 0x1p53, 0x1p53},
    {k2To60 + kHalfF32 - 1, 0x1p60, 0x1p60},
    {k2To60 + kHalfF32, 0x1p60, 0x1p60},
    {k2To60 + kHalfF32 + 1, 0x1.000002p60, 0x1p60},
    {k2To60 + 3 * kHalfF32 - 1, 0x1.000002p60, 0x1p60},
    {k2To60 + 3 * kHalfF32, 0x1.000004p60, 0x1p60},
    {k2To60 + kHalfBF16 - 1, 0x1.01p60, 0x1p60},
    {k2To60 + kHalfBF16, 0x1.01p60, 0x1p60},
    {k2To60 + kHalfBF16 + 1, 0x1.01p60, 0x1.02p60},
    {k2To60 + 3 * kHalfBF16 - 1, 0x1.03p60, 0x1.02p60},
    {std::numeric_limits<std::int64_t>::max(), 0x1p63, 0x1p63},
};

struct Casts {
  std::vector<double> y;
  Verification found;
};

// What the fastest variant gives, and what the reference says of it where one element is `changed`.
template <typename T>
absl::StatusOr<Casts> CastAndVerify(std::vector<T> x, DType from, DType to, bool changed) {
  GC_ASSIGN_OR_RETURN(const Registry registry, Registry::Create(BuiltInKernels()));
  const RegisteredKernel& cast = *registry.Find("cast");
  const auto n = static_cast<std::int64_t>(x.size());
  const OperandValue value{.is_list = false, .tensors = {{from, {n}}}};
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(cast.spec, {{"x", value}}, {{"to", to}}));
  std::vector<std::byte> y(static_cast<std::size_t>(Bytes(binding.outputs[0].tensors[0])));
  TbbThreads threads(1);
  GC_RETURN_IF_ERROR(LaunchFastest(cast, binding, {x.data(), y.data()}, threads));
  // In the last digit, which has the lowest address.
  if (changed) y[y.size() / x.size() * 3] ^= std::byte{1};
  Casts out;
  for (std::int64_t i = 0; i < n; ++i) out.y.push_back(LoadAsDouble(to, y.data(), i));
  const std::vector<OperandView> in = {{&binding.inputs[0], {x.data()}}};
  const std::vector<OperandView> got = {{&binding.outputs[0], {y.data()}}};
  std::vector<std::byte> memory(static_cast<std::size_t>(VerifyBytes(cast.def, binding, 1)));
  GC_ASSIGN_OR_RETURN(out.found, Verify(cast.def, binding, in, got, threads, memory));
  return out;
}

template <typename T>
void ExpectRounded(DType from, int sign) {
  for (const DType to : {DType::kF32, DType::kBF16}) {
    std::vector<T> x;
    std::vector<double> want;
    for (const Rounded& each : kRounded) {
      x.push_back(static_cast<T>(sign * each.x));
      want.push_back(sign * (to == DType::kF32 ? each.f32 : each.bf16));
    }
    ASSERT_OK_AND_ASSIGN(const Casts right, CastAndVerify(x, from, to, /*changed=*/false));
    EXPECT_EQ(right.y, want) << Name(to);
    EXPECT_EQ(right.found.mismatches, 0) << right.found.first_mismatch;
    ASSERT_OK_AND_ASSIGN(const Casts wrong, CastAndVerify(x, from, to, /*changed=*/true));
    EXPECT_EQ(wrong.found.mismatches, 1) << Name(to);
  }
}

TEST(CastOfWideIntegers, RoundsOnceAndSoDoesTheReference) {
  ExpectRounded<std::int64_t>(DType::kI64, 1);
  ExpectRounded<std::int64_t>(DType::kI64, -1);
  ExpectRounded<std::uint64_t>(DType::kU64, 1);
}

TEST(CastOfWideIntegers, ToF64IsTheNearestOne) {
  ASSERT_OK_AND_ASSIGN(const Casts casts,
                       CastAndVerify<std::int64_t>({k2To53 + 1, k2To53 + 3, -k2To53 - 3, 7},
                                                   DType::kI64, DType::kF64, /*changed=*/false));
  EXPECT_EQ(casts.y, (std::vector<double>{0x1p53, 0x1p53 + 4, -0x1p53 - 4, 7}));
  EXPECT_EQ(casts.found.mismatches, 0) << casts.found.first_mismatch;
}

}  // namespace
}  // namespace gridclock
