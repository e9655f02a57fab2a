// What the references of sum, mean and cumsum share.
#ifndef GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/catalog/reduce_sizes.h"
#include "kernels/catalog/reference.h"

namespace gridclock::reduce {

inline std::int64_t Terms(const Binding& binding) {
  return std::max<std::int64_t>(1, binding.Dim("N"));
}

// Of the terms of output element `unit`.
inline double SumOfMagnitudes(const Binding& binding, ReferenceInput in, std::int64_t unit,
                              std::size_t) {
  const Sizes s = SizesOf(binding);
  double sum = 0;
  for (std::int64_t k = 0; k < s.n; ++k) sum += std::fabs(in(0, FirstTerm(s, unit) + k * s.inner));
  return sum;
}

// The most of them of a column of matrix `unit`.
inline double MostOfColumns(const Binding& binding, ReferenceInput in, std::int64_t unit,
                            std::size_t output) {
  const std::int64_t columns = SizesOf(binding).inner;
  double most = 0;
  for (std::int64_t b = 0; b < columns; ++b) {
    most = std::max(most, SumOfMagnitudes(binding, in, unit * columns + b, output));
  }
  return most;
}

}  // namespace gridclock::reduce

#endif  // GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_
