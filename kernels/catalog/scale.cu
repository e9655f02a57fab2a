// Scaling: y = factor x, element by element.
//
//   naive   one loop, one thread
//   simd    whole vectors on every core; large outputs go past the caches
//
// On a GPU; times are of 2^26 f32 on an H200:
//   naive   209 us: one thread for each element
//   vec4    126 us: 16 bytes at a time, so that fewer instructions keep more bytes under way

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/attributes.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double factor = binding.F64("factor");
  const bool narrow = binding.inputs[0].tensors[0].dtype != DType::kF64;
  result[0] = (narrow ? static_cast<float>(factor) : factor) * in(0, unit);
}

absl::Status Validate(const Binding& binding) {
  return CheckFitsF32(binding, "factor");
}

absl::Status Naive(const Call& call) {
  const double factor = call.binding->F64("factor");
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) {
      y[i] = Narrow<T>(static_cast<Wide<T>>(factor) * Widen(x[i]));
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  const double factor = call.binding->F64("factor");
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const auto scaled = [factor](auto d, auto x) {
      return simd::hn::Mul(x, simd::hn::Set(d, static_cast<Wide<T>>(factor)));
    };
    simd::Map<T>(*call.threads, scaled, call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(scale) {
  return {
      .words =
          "x: T[*] -> y: T[*] over x; factor: f64 in (-inf, inf) "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "Each element times a number",
      .formula = "y = factor x",
      .notes =
          "The factor is rounded to f32 (not for f64), which must hold it, the product once more. "
          "f16 and bf16 are scaled in f32.",
      .validate = Validate,
      .reference = EachElement(Expected, Roundings::kOnce),
      .cpu = {{"naive", "One loop, one thread", Naive},
              {"simd", "Vectors on every core; large outputs bypass the caches", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

template <typename W>
struct Times {
  W factor;
  __device__ W operator()(W x) const { return factor * x; }
};

template <bool kPacks>
absl::Status Run(const Call& call) {
  const double factor = call.binding->F64("factor");
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const Times<cuda::Wide<T>> times{static_cast<cuda::Wide<T>>(factor)};
    const std::int64_t n = Elements(call.InShape(0));
    return kPacks ? cuda::MapPacks(call, times, call.Out<T>(0), n, call.In<T>(0))
                  : cuda::Map(call, times, call.Out<T>(0), n, call.In<T>(0));
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(scale) {
  return {{"naive", "One thread for each element", Run</*kPacks=*/false>},
          {"vec4", "16 bytes at a time: fewer instructions keep more bytes under way",
           Run</*kPacks=*/true>}};
}

#endif  // __CUDACC__
