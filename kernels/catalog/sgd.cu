// Stochastic gradient descent with weight decay, of each element of the parameters p with gradients
// g: p = p - lr (g + weight_decay p).
//
//   naive   a loop over the tensors and one over their elements, one thread
//   simd    the list as one run of elements, cut evenly among the cores, in vectors
//
// On a GPU: the ladder of list_cuda.cuh, from four launches for each tensor to one for all. A step
// over 1,000 tensors of 1 K to 64 K floats on an H200 (docs/optimizing.md): naive 18 ms by its
// launches; foreach 675 us, an operation over all tensors at a time, through memory; per_tensor
// 3.60 ms, all operations at once, a thousand launches; param_struct 142 us, of as many launches as
// its arguments need; pointer_table 119 us, of one.

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// The update's factors, the same for all elements.
struct SgdNumbers {
  float lr, weight_decay;
};

SgdNumbers SgdNumbersOf(const Binding& binding) {
  return {.lr = static_cast<float>(binding.F64("lr")),
          .weight_decay = static_cast<float>(binding.F64("weight_decay"))};
}

}  // namespace
}  // namespace gridclock

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>

#include "kernels/catalog/attributes.h"
#include "kernels/catalog/list_cpu.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

// As an f32, which is what it counts as.
double Rounded(const Binding& binding, const char* attribute) {
  return static_cast<float>(binding.F64(attribute));
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double p = in(0, unit), g = in(1, unit);
  result[0] = p - Rounded(binding, "lr") * (g + Rounded(binding, "weight_decay") * p);
}

// With sizes for p and g, the size of it.
double Update(const Binding& binding, double p, double g) {
  return g + Rounded(binding, "weight_decay") * p;
}

// A product below the normal numbers loses as much as the least of them.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  const double p = std::fabs(in(0, unit)), g = std::fabs(in(1, unit));
  result[0] = p + Rounded(binding, "lr") * (Update(binding, p, g) + 0x1p-126);
}

double Reach(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  const double p = std::fabs(in(0, unit)), update = Update(binding, p, std::fabs(in(1, unit)));
  return std::max(update, p + Rounded(binding, "lr") * update);
}

// Two products, a sum and the difference.
std::int64_t RoundingsOfStep(const Binding&) {
  return 4;
}

absl::Status Validate(const Binding& binding) {
  GC_RETURN_IF_ERROR(CheckFitsF32(binding, "lr"));
  return CheckFitsF32(binding, "weight_decay");
}

absl::Status Naive(const Call& call) {
  const SgdNumbers n = SgdNumbersOf(*call.binding);
  const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    float* p = call.Out<float>(0, t);
    const float* g = call.In<float>(1, t);
    for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
      p[i] -= n.lr * (g[i] + n.weight_decay * p[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Simd(const Call& call) {
  const SgdNumbers n = SgdNumbersOf(*call.binding);
  list::UpdateLists<0b01, 2>(call, {&call.outputs[0], &call.inputs[1]}, [&n](auto d, auto& x) {
    namespace hn = simd::hn;
    const auto update = hn::MulAdd(hn::Set(d, n.weight_decay), x[0], x[1]);
    x[0] = hn::NegMulAdd(hn::Set(d, n.lr), update, x[0]);
  });
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(sgd) {
  return {
      .words =
          "inout p: f32[*]..., g: f32[*]...; lr: f64 = 1e-3 in [0, inf), "
          "weight_decay: f64 = 0 in [0, inf), arg_bytes: i64 = 4096 in {4096, 32764} "
          "flops 4*numel(p)",
      .summary = "A step of stochastic gradient descent over a list of parameters",
      .formula = "p = p - lr (g + weight_decay p)",
      .notes =
          "Computed in f32, of lr and weight_decay as f32; where a step on the way overflows, so "
          "may the parameter, or it is NaN, and of one below 1.2e-38 digits are lost. "
          "arg_bytes: how many bytes of arguments a launch of param_struct has on a GPU; nothing "
          "else depends on it.",
      .validate = Validate,
      .reference = EachListElement(Expected, RoundingsOfStep, Magnitude, Reach),
      .cpu = {{"naive", "A loop over the tensors, one thread", Naive},
              {"simd", "The list as one run of elements, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/list_cuda.cuh"

namespace gridclock {
namespace {

using cuda::list::Do;

struct Sgd {
  using Element = float;
  static constexpr int kOperands = 2;  // p, g
  static constexpr unsigned kReads = 0b11, kWrites = 0b01;
  SgdNumbers n;
  __device__ void operator()(float (&x)[kOperands]) const {
    x[0] -= n.lr * (x[1] + n.weight_decay * x[0]);
  }
};

absl::Status Run(const Call& call, cuda::list::Rung rung) {
  const SgdNumbers n = SgdNumbersOf(*call.binding);
  enum : int { kP, kG, kUpdate };
  return cuda::list::Run(
      call, rung,
      cuda::list::Recipe<Sgd>{.op = {n},
                              .operands = {&call.outputs[0], &call.inputs[1]},
                              .steps = {{Do::kScale, kUpdate, kP, kP, n.weight_decay},
                                        {Do::kAdd, kUpdate, kUpdate, kG},
                                        {Do::kScale, kUpdate, kUpdate, kUpdate, n.lr},
                                        {Do::kSubtract, kP, kP, kUpdate}},
                              .temporaries = 1});
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(sgd) {
  return cuda::list::Ladder<Run>({.list = "p", .elements = "4", .operands = 2, .temporaries = 1});
}

#endif  // __CUDACC__
