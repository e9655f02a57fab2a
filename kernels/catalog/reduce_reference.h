// What the references of sum, mean, max, argmax and cumsum share.
#ifndef GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/catalog/reference.h"

namespace gridclock::reduce {

inline std::int64_t Terms(const Binding& binding) {
  return std::max<std::int64_t>(1, binding.Dim("N"));
}

// Where those of output element `unit` lie in x.
inline Line TermsOf(const Binding& binding, std::int64_t unit) {
  return LineOf(binding.inputs[0].tensors[0].shape, binding.Run("A").size(), unit);
}

inline double SumOfMagnitudes(const Binding& binding, ReferenceInput in, std::int64_t unit,
                              std::size_t) {
  const Line terms = TermsOf(binding, unit);
  double sum = 0;
  for (std::int64_t k = 0; k < terms.length; ++k) sum += std::fabs(in(0, terms.at(k)));
  return sum;
}

// The most of them of a column of matrix `unit`.
inline double MostOfColumns(const Binding& binding, ReferenceInput in, std::int64_t unit,
                            std::size_t output) {
  const std::int64_t columns = Elements(binding.Run("B"));
  double most = 0;
  for (std::int64_t b = 0; b < columns; ++b) {
    most = std::max(most, SumOfMagnitudes(binding, in, unit * columns + b, output));
  }
  return most;
}

}  // namespace gridclock::reduce

#endif  // GRIDCLOCK_KERNELS_CATALOG_REDUCE_REFERENCE_H_
