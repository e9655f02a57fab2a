// The sums of the references of matmul, matmul_bias_gelu and cdist.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_

#include <algorithm>
#include <cmath>
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
  ReferenceSum sum;
  for (std::int64_t k = 0; k < a.length; ++k) sum += term(in(0, a.at(k)), in(1, b.at(k)));
  return static_cast<double>(sum);
}

// By the attributes of the words.
template <typename Term>
double SumTerms(const Binding& binding, ReferenceInput in, std::int64_t unit, Term term) {
  return SumTerms(binding, binding.Bool("ta"), binding.Bool("tb"), in, unit, term);
}

// Of f32 whose factors are cut to 10 bits behind the point: each loses up to 2^-10 of itself, half
// of that in the mean, so that results lose up to 2^-9 of themselves; what is left has the signs of
// chance, so that errors of up to 2^-9 of each term come to the root of the sum of their squares.
// In the measure of verify.h, where the tolerance counts 4 (4 + sqrt(c)) roundings of f32.
inline void MagnitudeOfTf32(const Binding& binding, ReferenceInput in, std::int64_t unit,
                            std::size_t, std::span<double> result) {
  double want = 0, squares = 0;
  const double magnitude = SumTerms(binding, in, unit, [&](double a, double b) {
    want += a * b;
    squares += a * b * a * b;
    return std::fabs(a * b);
  });
  const double lost = 0x1p-9 * (std::fabs(want) + std::sqrt(squares));
  const double terms =
      std::sqrt(static_cast<double>(std::clamp<std::int64_t>(binding.Dim("K"), 1, 4096)));
  result[0] = magnitude;
  if (std::isfinite(lost)) result[0] += lost / (4 * (4 + terms) * 0x1p-24);
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_REFERENCE_H_
