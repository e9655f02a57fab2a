// GELU of one number on a GPU, for the kernels that end in one.
#ifndef GRIDCLOCK_KERNELS_CATALOG_GELU_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_GELU_CUDA_CUH_

#include "kernels/catalog/gelu_numbers.h"

namespace gridclock::gelu {

inline constexpr double kSqrt1Of2 = 0.70710678118654752440;

// So far below 0 every form gives -0; and -inf itself would give -inf * 0. NaN stays NaN.
struct AtSurelyZero {
  template <typename W>
  __device__ W operator()(W x) const {
    return x < W{-100} ? W{-100} : x;
  }
};

struct NaiveTanh {
  template <typename W>
  __device__ W operator()(W x) const {
    x = AtSurelyZero()(x);
    const W u = static_cast<W>(kSqrt2OverPi) * (x + static_cast<W>(kCubic) * x * x * x);
    return W{0.5} * x * (1 + tanh(u));
  }
};

struct Exact {
  template <typename W>
  __device__ W operator()(W x) const {
    x = AtSurelyZero()(x);
    return W{0.5} * x * (1 + erf(x * static_cast<W>(kSqrt1Of2)));
  }
};

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), exactly. In f32 the power of two and the reciprocal are
// those of the hardware: their errors are a few roundings of x, which is what a tanh costs too.
// What they make 0 of, 1 + exp does not see, or is below 1e-36; __expf and __fdividef, which keep
// it, take twice as many instructions.
struct FastTanh {
  __device__ double operator()(double x) const { return NaiveTanh()(x); }
  __device__ float operator()(float x) const {
    x = AtSurelyZero()(x);
    constexpr double kLog2E = 1.44269504088896340736;
    constexpr float kFirst = static_cast<float>(-2 * kLog2E * kSqrt2OverPi);
    constexpr float kThird = static_cast<float>(-2 * kLog2E * kSqrt2OverPi * kCubic);
    float power, share;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * (kFirst + kThird * (x * x))));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(1 + power));
    return x * share;
  }
};

}  // namespace gridclock::gelu

#endif  // GRIDCLOCK_KERNELS_CATALOG_GELU_CUDA_CUH_
