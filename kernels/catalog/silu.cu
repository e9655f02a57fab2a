// Sigmoid linear unit (also swish): y = x / (1 + exp(-x)), element by element.
//
// Far below 0 exp(-x) is infinite in f32 while y is still a number: silu(-90) is -7e-38. With
// g = exp(x/2) the same is x g g / (g g + 1), and of (x g) (g / (g g + 1)) nothing leaves the range
// before y does.
//
//   naive   that with the C library's exp, one thread
//   simd    a series for the exponential, in vectors on every core
//
// On a GPU; times are of 2^26 f32 on an H200:
//   naive   235 us: one thread for each element, with the library's exp
//   vec4    126 us: 16 bytes at a time, by the exponential and the reciprocal of the hardware and
//           without a jump, which takes no longer than `scale` does; f32 puts right what these
//           lose, 16-bit types do not see it

#include <type_traits>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// Below, y is 0 and exp(x/2) still a normal number; above, y is x.
template <typename W>
constexpr W kLow = std::is_same_v<W, double> ? -1416 : -170;
template <typename W>
constexpr W kHigh = 80;

}  // namespace
}  // namespace gridclock

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double x = in(0, unit);
  const double e = std::exp(-std::fabs(x));
  result[0] = x >= 0 ? x / (1 + e) : x * (e / (1 + e));
  if (std::isinf(x) && x < 0) result[0] = -0.0;  // -inf * 0 is NaN.
}

template <typename T>
T NaiveSilu(T element) {
  using W = Wide<T>;
  if (Widen(element) > kHigh<W>) return element;
  const W x = Widen(element) < kLow<W> ? kLow<W> : Widen(element);
  const W g = std::exp(W{0.5} * x);
  return Narrow<T>(x * g * (g / (g * g + 1)));
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) y[i] = NaiveSilu(x[i]);
    return absl::OkStatus();
  });
}

struct Silu {
  template <class D, class V>
  V operator()(D d, V x) const {
    namespace hn = simd::hn;
    using F = hn::TFromD<D>;
    const auto bounded = simd::AtMost(d, simd::AtLeast(d, x, kLow<F>), kHigh<F>);
    const auto g = simd::ExpInRange(d, hn::Mul(bounded, hn::Set(d, F{0.5})));
    const auto share = hn::Div(g, hn::MulAdd(g, g, hn::Set(d, F{1})));
    const auto y = hn::Mul(hn::Mul(bounded, g), share);
    return hn::IfThenElse(hn::Gt(x, hn::Set(d, kHigh<F>)), x, y);
  }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(*call.threads, Silu(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(silu) {
  return {
      .words = "x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16} flops 5*numel(x)",
      .summary = "Sigmoid linear unit of each element",
      .formula = "y = x / (1 + exp(-x))",
      .notes =
          "Computed in f32 (f64 for f64), to some units in its last place. silu(inf) = inf, "
          "silu(-inf) = -0, NaN stays NaN.",
      .reference = EachElement(Expected),
      .cpu = {{"naive", "exp of the C library, one thread", Naive},
              {"simd", "A series for the exponential, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

// Comparisons with NaN are false, so that it stays NaN.
struct Silu {
  template <typename W>
  __device__ W operator()(W x) const {
    if (x > kHigh<W>) return x;
    x = x < kLow<W> ? kLow<W> : x;
    const W g = exp(W{0.5} * x);
    return x * g * g / (g * g + 1);
  }
};

__device__ inline float HardwareExp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline float HardwareReciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The same without a jump, for which there is no time while memory is waited for: where x is too
// large, what was computed is not taken.
struct FastSilu {
  // To some units of f32's last place: what the hardware's exponential loses of its argument is put
  // right, and its reciprocal by a step of Newton's.
  __device__ float operator()(float x) const {
    constexpr double kScale = 0.72134752044448170368;  // log2(e) / 2
    constexpr auto kFirst = static_cast<float>(kScale);
    constexpr auto kRest = static_cast<float>(kScale - kFirst);
    constexpr float kLn2 = 0.69314718055994530942F;
    const float bounded = x < kLow<float> ? kLow<float> : x;
    const float exponent = bounded * kFirst;
    const float rest = fmaf(bounded, kFirst, -exponent) + bounded * kRest;
    float g = HardwareExp2(exponent);
    g = fmaf(g, rest * kLn2, g);
    const float divisor = fmaf(g, g, 1.0F);
    float quotient = HardwareReciprocal(divisor);
    quotient = fmaf(quotient, fmaf(-divisor, quotient, 1.0F), quotient);
    return x > kHigh<float> ? x : bounded * g * (g * quotient);
  }
  __device__ double operator()(double x) const { return Silu()(x); }
};

// Wrong by up to 200 units in the last place of f32 where x is far below 0, which 16 bits do not
// see. The share is taken 2^64 times, or exp(90) would be infinite.
struct FastSilu16 {
  __device__ float operator()(float x) const {
    constexpr float kLog2E = 1.4426950408889634F;
    const float bounded = x < kLow<float> ? kLow<float> : x;
    const float share = HardwareReciprocal(0x1p-64F + HardwareExp2(fmaf(bounded, -kLog2E, -64.0F)));
    return x > kHigh<float> ? x : bounded * share * 0x1p-64F;
  }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Silu(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    using Op = std::conditional_t<sizeof(T) == 2, FastSilu16, FastSilu>;
    return cuda::MapPacks(call, Op(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(silu) {
  return {{"naive", "One thread for each element, with the library's exp", Naive},
          {"vec4", "16 bytes at a time, by the hardware's exponential, put right for f32", Vec4}};
}

#endif  // __CUDACC__
