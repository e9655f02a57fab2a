#include "proto/types/convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace gridclock {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The value of a small floating type by its definition: sign * mantissa * 2^exponent.
double Define(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool ieee) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double sign = bits >> (exponent_bits + mantissa_bits) != 0 ? -1 : 1;
  const int ones = (1 << exponent_bits) - 1;
  if (ieee && exponent == ones) return mantissa == 0 ? sign * kInf : std::nan("");
  if (!ieee && exponent == ones && mantissa == (1 << mantissa_bits) - 1) return std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits;
  bool ieee, saturates;
  std::uint32_t count() const { return 2u << (exponent_bits + mantissa_bits); }
};
void PrintTo(const Format& format, std::ostream* out) {
  *out << Name(format.dtype);
}
class SmallFloats : public ::testing::TestWithParam<Format> {
 protected:
  double Load(std::uint32_t bits) const {
    return LoadAsDouble(GetParam().dtype, &bits, 0);  // Little-endian: the low bytes come first.
  }
  std::uint32_t Store(double value) const {
    std::uint32_t bits = 0;
    StoreFromDouble(GetParam().dtype, &bits, 0, value);
    return bits;
  }
  double Defined(std::uint32_t bits) const {
    return Define(bits, GetParam().exponent_bits, GetParam().mantissa_bits, GetParam().ieee);
  }
};
INSTANTIATE_TEST_SUITE_P(All, SmallFloats,
                         ::testing::Values(Format{DType::kF16, 5, 10, true, false},
                                           Format{DType::kBF16, 8, 7, true, false},
                                           Format{DType::kF8E4M3, 4, 3, false, true},
                                           Format{DType::kF8E5M2, 5, 2, true, true}));

TEST_P(SmallFloats, EveryValueIsWhatItsBitsSayAndComesBack) {
  for (std::uint32_t bits = 0; bits < GetParam().count(); ++bits) {
    const double want = Defined(bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(Load(bits))) << bits;
      ASSERT_TRUE(std::isnan(Load(Store(Load(bits))))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint64_t>(Load(bits)), std::bit_cast<std::uint64_t>(want)) << bits;
    if (std::isinf(want) && GetParam().saturates) continue;
    ASSERT_EQ(Store(want), bits);
  }
}

TEST_P(SmallFloats, RoundToTheNearestTiesToEven) {
  const std::uint32_t sign = GetParam().count() / 2;
  for (std::uint32_t bits = 0; bits + 1 < sign; ++bits) {
    const double low = Defined(bits), high = Defined(bits + 1);
    if (!std::isfinite(high) || !std::isfinite(low)) continue;
    const double middle = low + (high - low) / 2;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(Store(middle), even) << bits;
    ASSERT_EQ(Store(std::nextafter(middle, 0)), bits) << bits;
    ASSERT_EQ(Store(std::nextafter(middle, kInf)), bits + 1) << bits;
    ASSERT_EQ(Store(-middle), even + sign) << bits;
  }
}

TEST(Convert, GoesBeyondTheLargestAsDefined) {
  EXPECT_EQ(F16FromDouble(65519.999), 0x7BFF);
  EXPECT_EQ(F16FromDouble(65520), 0x7C00) << "half a step beyond 65504 is infinity";
  EXPECT_EQ(F16FromDouble(-kInf), 0xFC00);
  EXPECT_EQ(BF16FromDouble(3.4e38), 0x7F80);
  EXPECT_EQ(F8E4M3FromDouble(1e9), 0x7E);
  EXPECT_EQ(F8E4M3FromDouble(-kInf), 0xFE);
  EXPECT_EQ(F8E5M2FromDouble(kInf), 0x7B);
  EXPECT_EQ(F8E4M3ToFloat(0x7E), 448);
  EXPECT_EQ(F8E5M2ToFloat(0x7B), 57344);
  EXPECT_EQ(F16FromDouble(5e-324), 0);
  EXPECT_EQ(F16FromDouble(-1e-300), 0x8000);
}

TEST(Convert, KeepsTheSignOfNaN) {
  EXPECT_EQ(F16FromDouble(std::nan("")), 0x7E00);
  EXPECT_EQ(BF16FromDouble(-std::nan("")), 0xFFC0);
  EXPECT_EQ(F8E4M3FromDouble(std::nan("")), 0x7F);
  EXPECT_EQ(F8E5M2FromDouble(-std::nan("")), 0xFE);
}

TEST(Convert, DoesNotRoundTwice) {
  // Above half a step of f16 by less than a step of f32: by way of a float it would be a tie.
  const double value = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(F16FromDouble(value), 0x3C01);
  EXPECT_EQ(F16FromDouble(static_cast<float>(value)), 0x3C00);
}

template <typename T>
T Stored(DType dtype, double value) {
  T stored{};
  StoreFromDouble(dtype, &stored, 0, value);
  return stored;
}

TEST(Convert, CutsAndSaturatesIntegers) {
  EXPECT_EQ(Stored<std::int32_t>(DType::kI32, -2.9), -2);
  EXPECT_EQ(Stored<std::int8_t>(DType::kI8, 127.9), 127);
  EXPECT_EQ(Stored<std::int8_t>(DType::kI8, 1e9), 127);
  EXPECT_EQ(Stored<std::int8_t>(DType::kI8, -1e9), -128);
  EXPECT_EQ(Stored<std::uint8_t>(DType::kU8, -0.5), 0);
  EXPECT_EQ(Stored<std::uint16_t>(DType::kU16, 65535.5), 65535);
  EXPECT_EQ(Stored<std::int64_t>(DType::kI64, 9223372036854775808.0), INT64_MAX);
  EXPECT_EQ(Stored<std::int64_t>(DType::kI64, -kInf), INT64_MIN);
  EXPECT_EQ(Stored<std::uint64_t>(DType::kU64, 18446744073709551616.0), UINT64_MAX);
  EXPECT_EQ(Stored<std::int16_t>(DType::kI16, std::nan("")), 0);
  EXPECT_EQ(Stored<std::uint8_t>(DType::kBool, 0.25), 1);
  EXPECT_EQ(Stored<std::uint8_t>(DType::kBool, -0.0), 0);
  EXPECT_EQ(Stored<std::uint8_t>(DType::kBool, std::nan("")), 1);
}

TEST(Convert, ReadsAndWritesTheElementAtItsIndexWithoutAlignment) {
  for (const DType dtype : AllDTypes()) {
    std::vector<unsigned char> bytes(1 + 4 * SizeOf(dtype), 0xAA);
    StoreFromDouble(dtype, bytes.data() + 1, 2, 1);
    EXPECT_EQ(LoadAsDouble(dtype, bytes.data() + 1, 2), 1) << Name(dtype);
    EXPECT_EQ(bytes[2 * SizeOf(dtype)], 0xAA) << Name(dtype);
    EXPECT_EQ(bytes[1 + 3 * SizeOf(dtype)], 0xAA) << Name(dtype);
  }
}

}  // namespace
}  // namespace gridclock
