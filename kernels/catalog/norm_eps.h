// The eps of the norms.
#ifndef GRIDCLOCK_KERNELS_CATALOG_NORM_EPS_H_
#define GRIDCLOCK_KERNELS_CATALOG_NORM_EPS_H_

#include <algorithm>
#include <limits>

#include "kernels/api/kernel.h"

namespace gridclock::rows {

// The least normal number in place of a smaller eps: a row of zeros, or of equal elements, is then
// still 0 times a number.
template <typename W>
W EpsOf(const Call& call) {
  return std::max(static_cast<W>(call.binding->F64("eps")), std::numeric_limits<W>::min());
}

}  // namespace gridclock::rows

#endif  // GRIDCLOCK_KERNELS_CATALOG_NORM_EPS_H_
