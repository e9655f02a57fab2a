// What words cannot say of attributes.
#ifndef GRIDCLOCK_KERNELS_CATALOG_ATTRIBUTES_H_
#define GRIDCLOCK_KERNELS_CATALOG_ATTRIBUTES_H_

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/api/kernel.h"

namespace gridclock {

// Refuses a number that is infinite in f32, in which tensors of all types but f64 are computed.
inline absl::Status CheckFitsF32(const Binding& binding, const char* attribute) {
  const auto& tensors = binding.inputs[0].tensors;
  const double value = binding.F64(attribute);
  if (tensors.empty() || tensors[0].dtype == DType::kF64 ||
      std::fabs(value) <= std::numeric_limits<float>::max()) {
    return absl::OkStatus();
  }
  return WithField(absl::InvalidArgumentError(absl::StrCat(
                       "attribute '", attribute, "': want at most 3.4e38 either side of 0 for ",
                       Name(tensors[0].dtype), ", got ", value)),
                   absl::StrCat("attributes.", attribute));
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_ATTRIBUTES_H_
