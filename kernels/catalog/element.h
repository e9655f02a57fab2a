// Element types of the floating kernels, for host code.
#ifndef GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_
#define GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/api/kernel.h"
#include "kernels/catalog/float_types.h"
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

// The same from a double, rounded once.
template <typename T>
T Rounded(double x) {
  if constexpr (std::is_same_v<T, F16>) {
    return F16{F16FromDouble(x)};
  } else if constexpr (std::is_same_v<T, BF16>) {
    return BF16{BF16FromDouble(x)};
  } else {
    return static_cast<T>(x);
  }
}

template <typename Body>
absl::Status WithFloat(DType dtype, Body body) {
  return WithFloatOf<F16, BF16>(dtype, body);
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_ELEMENT_H_
