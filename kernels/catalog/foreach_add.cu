// Addition of lists of tensors: c[i] = a[i] + alpha b[i] for each pair, c in place of a where
// asked. Of a model's thousand parameters most are small: to launch, or to start threads, for each
// of them costs more than to add.
//
//   naive   a loop over the tensors and one over their elements, one thread
//   simd    the list as one run of elements, cut evenly among the cores, in vectors
//
// On a GPU: the ladder of list_cuda.cuh, from two launches for each pair to one for all. Of
// 1,000 tensors of 1 K to 64 K floats on an H200 (docs/optimizing.md): naive 11.9 ms by its
// launches; foreach 268 us, an operation over all tensors at a time; per_tensor 3.51 ms, a thousand
// launches; param_struct 147 us, of as many launches as its arguments need; pointer_table 114 us,
// of one.

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>

#include "kernels/catalog/attributes.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/list_cpu.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

// In what it is computed in.
double AlphaOf(const Binding& binding) {
  const double alpha = binding.F64("alpha");
  return binding.inputs[0].tensors[0].dtype == DType::kF64 ? alpha : static_cast<float>(alpha);
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) + AlphaOf(binding) * in(1, unit);
}

double SumOfMagnitudes(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  return std::fabs(in(0, unit)) + std::fabs(AlphaOf(binding) * in(1, unit));
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  result[0] = SumOfMagnitudes(binding, in, unit, output);
}

absl::Status Validate(const Binding& binding) {
  return CheckFitsF32(binding, "alpha");
}

absl::Status Naive(const Call& call) {
  const double alpha = call.binding->F64("alpha");
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const T *a = call.In<T>(0, t), *b = call.In<T>(1, t);
      T* c = call.Out<T>(0, t);
      for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
        c[i] = Narrow<T>(Widen(a[i]) + static_cast<Wide<T>>(alpha) * Widen(b[i]));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  const double alpha = call.binding->F64("alpha");
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    list::MapLists<T>(call, [alpha](auto d, auto a, auto b) {
      return simd::hn::MulAdd(simd::hn::Set(d, static_cast<Wide<T>>(alpha)), b, a);
    });
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(foreach_add) {
  return {
      .words =
          "a: T[*]..., b: T[*]... -> c: T[*]... over a; alpha: f64 = 1 in (-inf, inf), "
          "arg_bytes: i64 = 4096 in {4096, 32764} "
          "where T in {f64, f32, f16, bf16} flops 2*numel(c)",
      .summary = "The sums of two lists of tensors, pair by pair",
      .formula = "c[i] = a[i] + alpha b[i]",
      .notes =
          "Computed in f32 (f64 for f64), to which alpha is rounded and which must hold it, and "
          "the "
          "sum is rounded once. Where alpha b "
          "alone overflows, an element may be infinite or NaN though the sum is a number. "
          "arg_bytes: how many bytes of arguments a launch of param_struct has on a GPU; nothing "
          "else depends on it.",
      .validate = Validate,
      .reference = EachListElement(Expected, One, Magnitude, SumOfMagnitudes),
      .cpu = {{"naive", "A loop over the tensors, one thread", Naive},
              {"simd", "The list as one run of elements, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/list_cuda.cuh"

namespace gridclock {
namespace {

using cuda::list::Do;

template <typename T>
struct AddScaled {
  using Element = T;
  static constexpr int kOperands = 3;  // a, b, c
  static constexpr unsigned kReads = 0b011, kWrites = 0b100;
  cuda::Wide<T> alpha;
  __device__ void operator()(cuda::Wide<T> (&x)[kOperands]) const { x[2] = x[0] + alpha * x[1]; }
};

absl::Status Run(const Call& call, cuda::list::Rung rung) {
  const double alpha = call.binding->F64("alpha");
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    enum : int { kA, kB, kC, kScaled };
    return cuda::list::Run(
        call, rung,
        cuda::list::Recipe<AddScaled<T>>{
            .op = {static_cast<cuda::Wide<T>>(alpha)},
            .operands = {&call.inputs[0], &call.inputs[1], &call.outputs[0]},
            .steps = {{Do::kScale, kScaled, kB, kB, alpha}, {Do::kAdd, kC, kA, kScaled}},
            .temporaries = 1});
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(foreach_add) {
  return cuda::list::Ladder<Run>(
      {.list = "a", .elements = "max(sizeof(T), 4)", .operands = 3, .temporaries = 1});
}

#endif  // __CUDACC__
