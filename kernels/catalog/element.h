// Element types of the floating kernels, for host code.
#ifndef GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_
#define GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/api/kernel.h"
#include "proto/types/convert.h"
#include "proto/types/dtype.h"

namespace gridclock {

struct F16 {
  std::uint16_t bits = 0;
};
struct BF16 {
  std::uint16_t bits = 0;
};

// What elements of T are computed in: 16 bits are too few for any sum.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline double Widen(double x) {
  return x;
}
inline float Widen(float x) {
  return x;
}
inline float Widen(F16 x) {
  return F16ToFloat(x.bits);
}
inline float Widen(BF16 x) {
  return BF16ToFloat(x.bits);
}

// Rounds to the nearest, ties to even.
template <typename T>
T Narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, F16>) {
    return F16{F16FromDouble(x)};
  } else if constexpr (std::is_same_v<T, BF16>) {
    return BF16{BF16FromDouble(x)};
  } else {
    return x;
  }
}

// Calls body with a value of the type that `dtype` names; for words with T in {f64, f32, f16,
// bf16}.
template <typename Body>
absl::Status WithFloat(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF64:
      return body(double{});
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(F16{});
    case DType::kBF16:
      return body(BF16{});
    default:
      return absl::InternalError(
          absl::StrCat("want one of f64, f32, f16, bf16, got ", Name(dtype)));
  }
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_
