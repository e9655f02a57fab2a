// Elements of any dtype as doubles and back. Every conversion is defined, so that client, server,
// generators and references agree to the bit:
// - to a floating type: to the nearest, ties to even; never rounded twice. NaN becomes the quiet
// NaN
//   of the type with the same sign. f16 and bf16 overflow to infinity; the two f8 types saturate at
//   their largest finite value (448 and 57344), infinities too.
// - to an integer: toward zero, saturated at the ends of the type; NaN becomes 0.
// - to bool: 0 becomes 0, all else (NaN too) 1.
#ifndef GRIDCLOCK_PROTO_TYPES_CONVERT_H_
#define GRIDCLOCK_PROTO_TYPES_CONVERT_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "proto/types/dtype.h"

namespace gridclock {

// The layout of a floating type of at most 16 bits.
struct SmallFloat {
  int mantissa_bits = 0;
  int bias = 0;
  std::uint32_t max_finite = 0;  // Its bits.
  std::uint32_t overflow = 0;    // What lies beyond max_finite becomes this.
  std::uint32_t quiet_nan = 0;
  int sign_shift = 0;
  bool has_infinity = true;
};
inline constexpr SmallFloat kF16Layout{10, 15, 0x7BFF, 0x7C00, 0x7E00, 15, true};
inline constexpr SmallFloat kBF16Layout{7, 127, 0x7F7F, 0x7F80, 0x7FC0, 15, true};
inline constexpr SmallFloat kF8E4M3Layout{3, 7, 0x7E, 0x7E, 0x7F, 7, false};
inline constexpr SmallFloat kF8E5M2Layout{2, 15, 0x7B, 0x7B, 0x7E, 7, true};

template <SmallFloat kTo>
constexpr std::uint32_t EncodeSmallFloat(double x) {
  constexpr int kDoubleMantissa = 52, kDoubleBias = 1023;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint32_t>(bits >> 63) << kTo.sign_shift;
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  constexpr std::uint64_t kInfinity = std::uint64_t{0x7FF} << kDoubleMantissa;
  if (magnitude > kInfinity) return sign | kTo.quiet_nan;
  if (magnitude == kInfinity) return sign | kTo.overflow;
  const int exponent = static_cast<int>(magnitude >> kDoubleMantissa) - kDoubleBias;
  constexpr int kMinExponent = 1 - kTo.bias;
  // Steps below the smallest normal number; a subnormal loses that many bits more.
  const int below = exponent < kMinExponent ? kMinExponent - exponent : 0;
  const int shift = kDoubleMantissa - kTo.mantissa_bits + below;
  if (shift > kDoubleMantissa + 1) return sign;  // Under half of the smallest subnormal.
  constexpr std::uint64_t kOne = std::uint64_t{1} << kDoubleMantissa;
  const std::uint64_t mantissa = (magnitude & (kOne - 1)) | kOne;
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  const std::uint64_t rest = mantissa & (2 * half - 1);
  std::uint64_t kept = mantissa >> shift;
  kept += rest > half || (rest == half && (kept & 1) != 0);
  // `kept` holds the implicit bit, which is one step of the exponent; a carry is one more.
  if (below == 0) kept += static_cast<std::uint64_t>(exponent - kMinExponent) << kTo.mantissa_bits;
  return sign | (kept > kTo.max_finite ? kTo.overflow : static_cast<std::uint32_t>(kept));
}

template <SmallFloat kFrom>
constexpr float DecodeSmallFloat(std::uint32_t bits) {
  constexpr int kMantissa = kFrom.mantissa_bits;
  const std::uint32_t sign = bits >> kFrom.sign_shift << 31;
  const std::uint32_t magnitude = bits & ((1U << kFrom.sign_shift) - 1);
  if (kFrom.has_infinity && magnitude > kFrom.max_finite) {
    // Infinity or NaN: all ones in the exponent, the payload at the top.
    const std::uint32_t payload = magnitude & ((1U << kMantissa) - 1);
    return std::bit_cast<float>(sign | 0x7F800000U | payload << (23 - kMantissa));
  }
  if (!kFrom.has_infinity && magnitude == kFrom.quiet_nan) {
    return std::bit_cast<float>(sign | 0x7FC00000U);
  }
  if (magnitude >> kMantissa == 0) {  // Subnormal or zero. (Those of bf16 are those of f32.)
    if (kFrom.bias == 127) return std::bit_cast<float>(sign | magnitude << (23 - kMantissa));
    constexpr int kStep = 127 + 1 - kFrom.bias - kMantissa;
    const float value =
        static_cast<float>(magnitude) *
        std::bit_cast<float>(static_cast<std::uint32_t>(kStep > 0 ? kStep : 0) << 23);
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kFrom.bias) << 23;
  return std::bit_cast<float>(sign | ((magnitude << (23 - kMantissa)) + kRebias));
}

constexpr std::uint16_t F16FromDouble(double x) {
  return static_cast<std::uint16_t>(EncodeSmallFloat<kF16Layout>(x));
}
constexpr std::uint16_t BF16FromDouble(double x) {
  return static_cast<std::uint16_t>(EncodeSmallFloat<kBF16Layout>(x));
}
constexpr std::uint8_t F8E4M3FromDouble(double x) {
  return static_cast<std::uint8_t>(EncodeSmallFloat<kF8E4M3Layout>(x));
}
constexpr std::uint8_t F8E5M2FromDouble(double x) {
  return static_cast<std::uint8_t>(EncodeSmallFloat<kF8E5M2Layout>(x));
}
// A float holds every value of these types exactly.
constexpr float F16ToFloat(std::uint16_t bits) {
  return DecodeSmallFloat<kF16Layout>(bits);
}
constexpr float BF16ToFloat(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
constexpr float F8E4M3ToFloat(std::uint8_t bits) {
  return DecodeSmallFloat<kF8E4M3Layout>(bits);
}
constexpr float F8E5M2ToFloat(std::uint8_t bits) {
  return DecodeSmallFloat<kF8E5M2Layout>(bits);
}

// Toward zero, saturated; NaN becomes 0.
template <typename T>
constexpr T IntegerFromDouble(double value) {
  using Limits = std::numeric_limits<T>;
  // One beyond the largest value: a power of two, which a double holds where max() may not fit.
  constexpr double kBeyond = static_cast<double>(Limits::max()) + 1;
  if (value != value) return 0;
  if (value >= kBeyond) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<T>(value);
}

// Element `index` of an array of `dtype`, which needs no alignment. 64-bit integers beyond 2^53 are
// rounded to the nearest double.
double LoadAsDouble(DType dtype, const void* data, std::int64_t index);
void StoreFromDouble(DType dtype, void* data, std::int64_t index, double value);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_CONVERT_H_
