// Logistic function: y = 1 / (1 + exp(-x)), element by element.
//
//   naive   the formula with the C library's exp, one thread
//   simd    a series for the exponential, in vectors on every core
//
// On a GPU; times are of 2^26 f32 on an H200:
//   naive   227 us: one thread for each element, the formula with the library's exp
//   vec4    128 us: 16 bytes at a time, so that fewer instructions keep more bytes under way: the
//           same arithmetic then hides behind memory. 16-bit types by the exponential and the
//           quotient of the hardware, whose errors they do not see

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = 1 / (1 + std::exp(-in(0, unit)));
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(1 / (1 + std::exp(-Widen(x[i]))));
    return absl::OkStatus();
  });
}

struct Sigmoid {
  template <class D, class V>
  V operator()(D d, V x) const {
    namespace hn = simd::hn;
    using F = hn::TFromD<D>;
    constexpr double kAddsNothing = -40;  // 1 + exp(-40) is 1, even in f64.
    const auto exponent =
        simd::AtMost(d, simd::AtLeast(d, hn::Neg(x), kAddsNothing), simd::ExpFacts<F>::kHigh);
    const auto one = hn::Set(d, F{1});
    return hn::Div(one, hn::Add(one, simd::ExpInRange(d, exponent)));
  }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(*call.threads, Sigmoid(), call.Out<T>(0), Elements(call.InShape(0)),
                 call.In<T>(0));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(sigmoid) {
  return {
      .words = "x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16} flops 4*numel(x)",
      .summary = "Logistic function of each element",
      .formula = "y = 1 / (1 + exp(-x))",
      .notes =
          "Computed in f32 (f64 for f64), to some units in its last place. sigmoid(inf) = 1, "
          "sigmoid(-inf) = 0, NaN stays NaN.",
      .reference = EachElement(Expected),
      .cpu = {{"naive", "exp of the C library, one thread", Naive},
              {"simd", "A series for the exponential, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

struct Sigmoid {
  template <typename W>
  __device__ W operator()(W x) const {
    return 1 / (1 + exp(-x));
  }
};

// Wrong by up to 100 units in the last place of f32 where x is far below 0.
struct FastSigmoid {
  __device__ float operator()(float x) const { return __fdividef(1, 1 + __expf(-x)); }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Sigmoid(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    using Op = std::conditional_t<sizeof(T) == 2, FastSigmoid, Sigmoid>;
    return cuda::MapPacks(call, Op(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(sigmoid) {
  return {{"naive", "One thread for each element, with the library's exp", Naive},
          {"vec4", "16 bytes at a time; 16-bit types by the hardware's exponential", Vec4}};
}

#endif  // __CUDACC__
