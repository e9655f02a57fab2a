// Product of lists of tensors: c[i] = a[i] b[i] for each pair, element by element, c in place of a
// where asked.
//
//   naive   a loop over the tensors and one over their elements, one thread
//   simd    the list as one run of elements, cut evenly among the cores, in vectors
//
// On a GPU: the ladder of list_cuda.cuh, from a launch for each pair to one for all. There is one
// elementary operation: to fuse operations gains nothing here, to fuse tensors gains all. Of 1,000
// tensors of 1 K to 64 K floats on an H200 (docs/optimizing.md): naive 5.7 ms by its launches;
// foreach 148 us; per_tensor 3.51 ms, a thousand launches; param_struct 147 us, of as many launches
// as its arguments need; pointer_table 108 us, of one.

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/element.h"
#include "kernels/catalog/list_cpu.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) * in(1, unit);
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const T *a = call.In<T>(0, t), *b = call.In<T>(1, t);
      T* c = call.Out<T>(0, t);
      for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
        c[i] = Narrow<T>(Widen(a[i]) * Widen(b[i]));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    list::MapLists<T>(call, [](auto, auto a, auto b) { return simd::hn::Mul(a, b); });
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(foreach_mul) {
  return {
      .words =
          "a: T[*]..., b: T[*]... -> c: T[*]... over a; "
          "arg_bytes: i64 = 4096 in {4096, 32764} "
          "where T in {f64, f32, f16, bf16} flops numel(c)",
      .summary = "The products of two lists of tensors, pair by pair",
      .formula = "c[i] = a[i] b[i]",
      .notes =
          "Computed in f32 (f64 for f64) and rounded once. arg_bytes: how many bytes of arguments "
          "a "
          "launch of param_struct has on a GPU; nothing else depends on it.",
      .reference = EachListElement(Expected, One, nullptr, nullptr, Roundings::kOnce),
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
struct Multiply {
  using Element = T;
  static constexpr int kOperands = 3;  // a, b, c
  static constexpr unsigned kReads = 0b011, kWrites = 0b100;
  __device__ void operator()(cuda::Wide<T> (&x)[kOperands]) const { x[2] = x[0] * x[1]; }
};

absl::Status Run(const Call& call, cuda::list::Rung rung) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    enum : int { kA, kB, kC };
    return cuda::list::Run(call, rung,
                           cuda::list::Recipe<Multiply<T>>{
                               .op = {},
                               .operands = {&call.inputs[0], &call.inputs[1], &call.outputs[0]},
                               .steps = {{Do::kMultiply, kC, kA, kB}}});
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(foreach_mul) {
  return cuda::list::Ladder<Run>(
      {.list = "a", .elements = "max(sizeof(T), 4)", .operands = 3, .temporaries = 0});
}

#endif  // __CUDACC__
