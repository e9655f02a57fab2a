// Square: y = x^2, element by element.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches
//
// On a GPU; times are of 2^28 f32 on an H200 (docs/optimizing.md):
//   naive   814 us: one thread for each element
//   vec4    500 us: 16 bytes at a time, so that fewer instructions keep more bytes under way

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double x = in(0, unit);
  result[0] = x * x;
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(Widen(x[i]) * Widen(x[i]));
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(
        *call.threads, [](auto, auto x) { return simd::hn::Mul(x, x); }, call.Out<T>(0),
        Elements(call.InShape(0)), call.In<T>(0));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(square) {
  return {
      .words = "x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16}",
      .summary = "The square of each element",
      .formula = "y = x^2",
      .notes = "One rounding. f16 and bf16 are squared in f32 and rounded once.",
      .reference = EachElement(Expected, Roundings::kOnce),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

struct Square {
  template <typename W>
  __device__ W operator()(W x) const {
    return x * x;
  }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Square(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::MapPacks(call, Square(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(square) {
  return {{"naive", "One thread for each element", Naive},
          {"vec4", "16 bytes at a time: fewer instructions keep more bytes under way", Vec4}};
}

#endif  // __CUDACC__
