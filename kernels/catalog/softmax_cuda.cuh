// What softmax and log_softmax share on a GPU: the largest of a row and its sum of exponentials,
// found in one reading.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_

#include <cstdint>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/rows_cuda.cuh"

namespace gridclock::softmax {

using cuda::Infinity;
using cuda::Wide;

// exp(x - largest). In f32 the difference comes first and is then scaled for the hardware's power
// of two: scaled numbers could overflow, and would carry their rounding into the exponent.
__device__ inline double Term(double x, double largest) {
  return exp(x - largest);
}
__device__ inline float Term(float x, float largest) {
  constexpr float kLog2E = 1.44269504f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((x - largest) * kLog2E));
  return result;
}

// With nothing but -inf so far, any finite number in place of it makes the terms 0.
template <typename W>
__device__ W ShiftFor(W largest) {
  return largest == -Infinity<W>() ? W{0} : largest;
}

// The part of an Op (rows_cuda.cuh) that is the same for both.
template <typename T>
struct Exponentials : rows::NoColumns {
  using Element = T;
  using W = Wide<T>;

  // The largest element, NaN left out, and the sum of exp(x - largest), NaN kept.
  struct State {
    W largest, sum;
  };

  static __device__ State Nothing() { return {-Infinity<W>(), 0}; }
  static __device__ W Padding() { return -Infinity<W>(); }

  // When a larger element turns up, the sum so far is scaled down to it.
  template <int kMany>
  static __device__ State Add(const State& s, const W (&v)[kMany], int) {
    W largest = s.largest;
#pragma unroll
    for (int i = 0; i < kMany; ++i) largest = max(largest, v[i]);
    const W shift = ShiftFor(largest);
    W sum = s.sum * Term(s.largest, shift);
#pragma unroll
    for (int i = 0; i < kMany; ++i) sum += Term(v[i], shift);
    return {largest, sum};
  }

  static __device__ State Join(const State& a, const State& b) {
    const W largest = max(a.largest, b.largest);
    const W shift = ShiftFor(largest);
    return {largest, a.sum * Term(a.largest, shift) + b.sum * Term(b.largest, shift)};
  }

  template <int kMany>
  static __device__ W LargestOf(const W (&v)[kMany]) {
    W largest = v[0];
#pragma unroll
    for (int i = 1; i < kMany; ++i) largest = max(largest, v[i]);
    return rows::LargestOfWarp(largest);
  }
};

}  // namespace gridclock::softmax

#endif  // GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_
