// The sums of the references of matmul, matmul_bias_gelu and cdist.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/catalog/reference.h"

namespace gridclock::matmul {

// Sums term(a, b) over the terms of element `unit` of c. They lie along the last dimension of a
// ([*, M, K]) and the one before it of b ([*, K, N]), or the other way round if transposed.
template <typename Term>
double SumTerms(const Binding& binding, bool transpose_a, bool transpose_b, ReferenceInput in,
                std::int64_t unit, Term term) {
  const auto shape = [](const OperandValue& operand) -> const Shape& {
    return operand.tensors[0].shape;
  };
  const Shape& c = shape(binding.outputs[0]);
  const std::size_t last = c.size() - 1;
  const std::int64_t row = unit / c[last], matrix = row / c[last - 1];
  const Line a = LineOf(shape(binding.inputs[0]), transpose_a ? last - 1 : last, row);
  const Line b = LineOf(shape(binding.inputs[1]), transpose_b ? last : last - 1,
                        matrix * c[last] + unit % c[last]);
  double sum = 0;
  for (std::int64_t k = 0; k < a.length; ++k) sum += term(in(0, a.at(k)), in(1, b.at(k)));
  return sum;
}

// By the attributes of the words.
template <typename Term>
double SumTerms(const Binding& binding, ReferenceInput in, std::int64_t unit, Term term) {
  return SumTerms(binding, binding.Bool("ta"), binding.Bool("tb"), in, unit, term);
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_
