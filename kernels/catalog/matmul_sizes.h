// The sizes of a matrix product and how its operands lie, for CPUs and GPUs alike.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_SIZES_H_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_SIZES_H_

#include <cstdint>

#include "kernels/api/kernel.h"

namespace gridclock::matmul {

// One operand as the product sees it: element (i, j) lies at i * row + j * column.
struct Strides {
  std::int64_t row = 0, column = 0;
};

// c[m, n] from a[m, k] and b[k, n], for each matrix of a batch.
struct Sizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Strides a, b;
};

// What lies transposed in memory is so by its strides. `depth` is the name of what is summed over.
inline Sizes SizesOf(const Binding& binding, bool transpose_a, bool transpose_b,
                     const char* depth = "K") {
  Sizes s;
  s.m = binding.Dim("M");
  s.n = binding.Dim("N");
  s.k = binding.Dim(depth);
  const Shape& c = binding.outputs[0].tensors[0].shape;
  for (std::size_t i = 0; i + 2 < c.size(); ++i) s.batch *= c[i];
  s.a = transpose_a ? Strides{1, s.m} : Strides{s.k, 1};
  s.b = transpose_b ? Strides{1, s.k} : Strides{s.n, 1};
  return s;
}

// By the attributes of the same names.
inline Sizes SizesOf(const Binding& binding) {
  return SizesOf(binding, binding.Bool("ta"), binding.Bool("tb"));
}

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_SIZES_H_
