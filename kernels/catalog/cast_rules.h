// How numbers of one type become those of another, for host and GPU code alike.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CAST_RULES_H_
#define GRIDCLOCK_KERNELS_CATALOG_CAST_RULES_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/types/dtype.h"

namespace gridclock::cast {

// Elements of one byte that are no numbers of C++.
struct Bool {
  std::uint8_t bits = 0;
};
struct F8E4M3 {
  std::uint8_t bits = 0;
};
struct F8E5M2 {
  std::uint8_t bits = 0;
};

// The type through which elements of T go, which holds each of their values: so that there are
// 15 + 5 x 15 conversions to write and not 15 x 15. Integers of 32 bits have one of their own
// beside that of 64: a vector holds twice as many.
template <typename T>
struct CarrierOf {
  using type = float;
};
template <>
struct CarrierOf<double> {
  using type = double;
};
template <>
struct CarrierOf<std::uint64_t> {
  using type = std::uint64_t;
};
template <typename T>
requires std::is_integral_v<T>
struct CarrierOf<T> {
  using type =
      std::conditional_t<(std::numeric_limits<T>::digits < 32), std::int32_t, std::int64_t>;
};
template <typename T>
using Carrier = typename CarrierOf<T>::type;
static_assert(std::is_same_v<Carrier<Bool>, float>);
static_assert(std::is_same_v<Carrier<std::uint32_t>, std::int64_t>);

// A floating number toward zero; the end of the type where it lies beyond; 0 for NaN. Without a
// branch around the conversion, so that a compiler makes vectors of it.
template <typename To, typename C>
constexpr To Truncated(C x) {
  constexpr int kBits = std::numeric_limits<To>::digits;
  constexpr C kBeyond = static_cast<C>(std::uint64_t{1} << (kBits - 1)) * 2;
  constexpr C kLeast = static_cast<C>(std::numeric_limits<To>::min());
  const C held = x < kBeyond ? (x < kLeast ? kLeast : x) : C{0};  // 0 for NaN too.
  const To whole = static_cast<To>(held);
  return x >= kBeyond ? std::numeric_limits<To>::max() : whole;
}

// A whole number, or the end of the type where it lies beyond.
template <typename To, typename C>
constexpr To Clamped(C x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_signed_v<C>) {
    if (x < 0 && (!std::is_signed_v<To> || x < static_cast<std::int64_t>(Limits::min()))) {
      return Limits::min();
    }
  }
  if (x > 0 && static_cast<std::uint64_t>(x) > static_cast<std::uint64_t>(Limits::max())) {
    return Limits::max();
  }
  return static_cast<To>(x);
}

template <typename To, typename C>
constexpr To ToInteger(C x) {
  if constexpr (std::is_floating_point_v<C>) {
    return Truncated<To>(x);
  } else {
    return Clamped<To>(x);
  }
}

// An integer as a double that is rounded to 24 digits or fewer as the integer itself would be:
// where a double cannot hold it, its last 12 bits become one that says whether any was set.
constexpr double Sticky(std::int32_t x) {
  return x;
}
template <typename C>
constexpr double Sticky(C x) {
  constexpr C kHeld = C{1} << 53, kLast = 0xFFF;
  const bool held = x <= kHeld && (std::is_unsigned_v<C> || x >= C{} - kHeld);
  if (held) return static_cast<double>(x);
  return static_cast<double>((x & ~kLast) | ((x & kLast) != 0 ? C{0x800} : C{}));
}

// Calls body with a value of the type of each dtype; Half and Bfloat are the caller's.
template <typename Half, typename Bfloat, typename Body>
absl::Status WithElementOf(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF64:
      return body(double{});
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(Half{});
    case DType::kBF16:
      return body(Bfloat{});
    case DType::kF8E4M3:
      return body(F8E4M3{});
    case DType::kF8E5M2:
      return body(F8E5M2{});
    case DType::kI64:
      return body(std::int64_t{});
    case DType::kI32:
      return body(std::int32_t{});
    case DType::kI16:
      return body(std::int16_t{});
    case DType::kI8:
      return body(std::int8_t{});
    case DType::kU64:
      return body(std::uint64_t{});
    case DType::kU32:
      return body(std::uint32_t{});
    case DType::kU16:
      return body(std::uint16_t{});
    case DType::kU8:
      return body(std::uint8_t{});
    case DType::kBool:
      return body(Bool{});
  }
  return absl::InternalError(absl::StrCat("no dtype has the number ", static_cast<int>(dtype)));
}

}  // namespace gridclock::cast

#endif  // GRIDCLOCK_KERNELS_CATALOG_CAST_RULES_H_
