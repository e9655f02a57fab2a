// The element types of words with T in {f64, f32, f16, bf16}, for host and GPU code alike.
#ifndef GRIDCLOCK_KERNELS_CATALOG_FLOAT_TYPES_H_
#define GRIDCLOCK_KERNELS_CATALOG_FLOAT_TYPES_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/types/dtype.h"

namespace gridclock {

// Calls body with a value of the type that `dtype` names; Half and Bfloat are the caller's types of
// 16 bits.
template <typename Half, typename Bfloat, typename Body>
absl::Status WithFloatOf(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF64:
      return body(double{});
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(Half{});
    case DType::kBF16:
      return body(Bfloat{});
    default:
      return absl::InternalError(
          absl::StrCat("want one of f64, f32, f16, bf16, got ", Name(dtype)));
  }
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_FLOAT_TYPES_H_
