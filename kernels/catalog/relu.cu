// Rectified linear unit: y = max(x, 0), element by element. NaN stays NaN.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches
//
// On a GPU; times are of 2^28 bf16 on an H200 (docs/optimizing.md):
//   naive   723 us: one thread for each element
//   vec4    251 us: 16 bytes at a time, so that fewer instructions keep more bytes under way

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
  result[0] = x < 0 ? 0 : x;
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) y[i] = Widen(x[i]) < 0 ? T{} : x[i];
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const auto relu = [](auto d, auto x) {
      return simd::hn::IfThenElse(simd::hn::Lt(x, simd::hn::Zero(d)), simd::hn::Zero(d), x);
    };
    simd::Map<T>(*call.threads, relu, call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(relu) {
  return {
      .words = "x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16}",
      .summary = "The positive part of each element",
      .formula = "y = max(x, 0)",
      .notes = "Exact. NaN stays NaN.",
      .reference = EachElement(Expected, Roundings::kNone),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

struct Relu {
  template <typename W>
  __device__ W operator()(W x) const {
    return x < 0 ? W{0} : x;
  }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Relu(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::MapPacks(call, Relu(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(relu) {
  return {{"naive", "One thread for each element", Naive},
          {"vec4", "16 bytes at a time: fewer instructions keep more bytes under way", Vec4}};
}

#endif  // __CUDACC__
