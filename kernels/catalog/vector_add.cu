// Vector addition: c = a + b, element by element.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches
//
// On a GPU; times are of 2^18 f32 on an H200 (docs/optimizing.md):
//   serial      11.7 ms: one thread does it all, <<<1, 1>>>: how every first course begins
//   one_block   169 us: the threads of one block, on one multiprocessor of many
//   naive       1.7 us: one thread for each element
//   vec4        16 bytes at a time, so that fewer instructions keep more bytes under way: 184 us of
//               2^26, where naive takes 242

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) + in(1, unit);
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* a = call.In<T>(0);
    const T* b = call.In<T>(1);
    T* c = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) c[i] = Narrow<T>(Widen(a[i]) + Widen(b[i]));
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    simd::Map<T>(
        *call.threads, [](auto, auto a, auto b) { return simd::hn::Add(a, b); }, call.Out<T>(0),
        Elements(call.InShape(0)), call.In<T>(0), call.In<T>(1));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(vector_add) {
  return {
      .words = "a: T[*], b: T[*] -> c: T[*] over a where T in {f64, f32, f16, bf16} flops numel(c)",
      .summary = "The sum of two tensors, element by element",
      .formula = "c = a + b",
      .notes = "One rounding. f16 and bf16 are added in f32 and rounded once.",
      .reference = EachElement(Expected, Roundings::kOnce),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

struct Add {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return a + b;
  }
};

absl::Status OnThreads(const Call& call, std::int64_t threads) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::MapOn(call, {.grid = {1}, .block = {threads}}, Add(), call.Out<T>(0),
                       Elements(call.InShape(0)), call.In<T>(0), call.In<T>(1));
  });
}

absl::Status Serial(const Call& call) {
  return OnThreads(call, 1);
}

absl::Status OneBlock(const Call& call) {
  return OnThreads(call, 256);
}

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Map(call, Add(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0),
                     call.In<T>(1));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::MapPacks(call, Add(), call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0),
                          call.In<T>(1));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(vector_add) {
  return {{"serial", "One thread does it all", Serial},
          {"one_block", "256 threads of one block, on one multiprocessor of many", OneBlock},
          {"naive", "One thread for each element", Naive},
          {"vec4", "16 bytes at a time: fewer instructions keep more bytes under way", Vec4}};
}

#endif  // __CUDACC__
