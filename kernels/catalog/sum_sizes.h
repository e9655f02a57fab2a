// What a sum sees of its shapes.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SUM_SIZES_H_
#define GRIDCLOCK_KERNELS_CATALOG_SUM_SIZES_H_

#include <cstdint>

#include "kernels/api/kernel.h"

namespace gridclock::sum {

// The input is [outer, n, inner], the output [outer, inner].
struct Sizes {
  std::int64_t outer = 1, n = 1, inner = 1;
};

inline Sizes SizesOf(const Binding& binding) {
  return {Elements(binding.Run("A")), binding.Dim("N"), Elements(binding.Run("B"))};
}

}  // namespace gridclock::sum

#endif  // GRIDCLOCK_KERNELS_CATALOG_SUM_SIZES_H_
