// Product of two tensors, element by element: c = a b.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches
//
// On a GPU; times are of 2^26 f32 on an H200:
//   naive   242 us: one thread for each element
//   vec4    184 us: 16 bytes at a time, so that fewer instructions keep more bytes under way

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) * in(1, unit);
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* a = call.In<T>(0);
    const T* b = call.In<T>(1);
    T* c = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) c[i] = Narrow<T>(Widen(a[i]) * Widen(b[i]));
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(
        *call.threads, [](auto, auto a, auto b) { return simd::hn::Mul(a, b); }, call.Out<T>(0),
        Elements(call.InShape(0)), call.In<T>(0), call.In<T>(1));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(mul) {
  return {
      .words = "a: T[*], b: T[*] -> c: T[*] over a where T in {f64, f32, f16, bf16} flops numel(c)",
      .summary = "The product of two tensors, element by element",
      .formula = "c = a b",
      .notes = "One rounding. f16 and bf16 are multiplied in f32 and rounded once.",
      .reference = EachElement(Expected, Roundings::kOnce),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

struct Multiply {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return a * b;
  }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Multiply(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0),
                     call.In<T>(1));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::MapPacks(call, Multiply(), call.Out<T>(0), Elements(call.InShape(0)),
                          call.In<T>(0), call.In<T>(1));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(mul) {
  return {{"naive", "One thread for each element", Naive},
          {"vec4", "16 bytes at a time: fewer instructions keep more bytes under way", Vec4}};
}

#endif  // __CUDACC__
