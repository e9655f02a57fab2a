// What a kernel over one dimension (sum, mean, max, argmax, cumsum) sees of its shapes.
#ifndef GRIDCLOCK_KERNELS_CATALOG_REDUCE_SIZES_H_
#define GRIDCLOCK_KERNELS_CATALOG_REDUCE_SIZES_H_

#include <cstdint>

#include "kernels/api/kernel.h"

namespace gridclock::reduce {

// The input is [outer, n, inner], the output of a reduction [outer, inner].
struct Sizes {
  std::int64_t outer = 1, n = 1, inner = 1;
};

inline Sizes SizesOf(const Binding& binding) {
  return {Elements(binding.Run("A")), binding.Dim("N"), Elements(binding.Run("B"))};
}

// The element of x where the terms of output element `unit` begin; they lie `inner` apart.
inline std::int64_t FirstTerm(const Sizes& s, std::int64_t unit) {
  return unit / s.inner * s.n * s.inner + unit % s.inner;
}

}  // namespace gridclock::reduce

#endif  // GRIDCLOCK_KERNELS_CATALOG_REDUCE_SIZES_H_
