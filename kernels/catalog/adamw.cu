// AdamW, Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101), of each
// element of the parameters p with gradients g and the running means m of g and v of g^2, at step t
// = 1, 2..:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   p = p (1 - lr weight_decay) - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
//
//   naive   a loop over the tensors and one over their elements, one thread
//   simd    the list as one run of elements, cut evenly among the cores, in vectors
//
// On a GPU: the ladder of list_cuda.cuh, from fourteen launches for each tensor to one for all.
// Fused, an element is read and written once; unfused, its four numbers go through memory again and
// again. A step over 1,000 tensors of 1 K to 64 K floats on an H200 (docs/optimizing.md): naive
// 76.4 ms by its launches, foreach 2.32 ms, per_tensor 3.66 ms, param_struct 288 us, pointer_table
// 242 us.

#include "kernels/api/kernel.h"
#include "kernels/catalog/adam_numbers.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/catalog/list_cpu.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

// What one element becomes, or the sizes of the terms that it is the sum of.
struct Element {
  double p, m, v;
};

Element StepOf(const Binding& binding, const Element& before, double g) {
  const double beta1 = binding.F64("beta1"), beta2 = binding.F64("beta2"), lr = binding.F64("lr");
  const auto t = static_cast<double>(binding.I64("step"));
  Element after{};
  after.m = beta1 * before.m + (1 - beta1) * g;
  after.v = beta2 * before.v + (1 - beta2) * g * g;
  const double mean = after.m / (1 - std::pow(beta1, t));
  const double square = after.v / (1 - std::pow(beta2, t));
  after.p = before.p * (1 - lr * binding.F64("weight_decay")) -
            lr * mean / (std::sqrt(square) + AdamEpsOf(binding));
  return after;
}

Element Before(ReferenceInput in, std::int64_t unit) {
  return {.p = in(0, unit), .m = in(2, unit), .v = in(3, unit)};
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
              std::span<double> result) {
  const Element after = StepOf(binding, Before(in, unit), in(1, unit));
  result[0] = output == 0 ? after.p : output == 1 ? after.m : after.v;
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  const double g = in(1, unit);
  const Element before = Before(in, unit);
  // With all terms of one sign nothing cancels.
  const Element sizes =
      StepOf(binding, {.p = 0, .m = std::fabs(before.m), .v = before.v}, std::fabs(g));
  const double kept = std::fabs(before.p) * (1 + binding.F64("lr") * binding.F64("weight_decay"));
  result[0] = output == 0   ? kept - sizes.p + AdamLossOf(binding, sizes.m, sizes.v)
              : output == 1 ? sizes.m
                            : sizes.v;
}

double Reach(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output) {
  const double p = std::fabs(in(0, unit)) * (1 + binding.F64("lr") * binding.F64("weight_decay"));
  const Element sizes =
      StepOf(binding, {.p = 0, .m = std::fabs(in(2, unit)), .v = std::fabs(in(3, unit))},
             std::fabs(in(1, unit)));
  if (output == 1) return sizes.m;
  if (output == 2) return sizes.v;
  return std::max({p - sizes.p, sizes.m, sizes.v, AdamRateOf(binding, sizes.v)});
}

// Of the results: the means, the root, the quotient and the difference.
std::int64_t RoundingsOfStep(const Binding&) {
  return 8;
}

absl::Status Naive(const Call& call) {
  const AdamNumbers n = AdamNumbersOf(*call.binding);
  const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    float *p = call.Out<float>(0, t), *m = call.Out<float>(1, t), *v = call.Out<float>(2, t);
    const float* g = call.In<float>(1, t);
    for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
      m[i] = n.beta1 * m[i] + n.rest1 * g[i];
      v[i] = n.beta2 * v[i] + n.rest2 * g[i] * g[i];
      p[i] = n.kept * p[i] - n.step / (std::sqrt(v[i]) * n.root_scale + n.eps) * m[i];
    }
  }
  return absl::OkStatus();
}

absl::Status Simd(const Call& call) {
  const AdamNumbers n = AdamNumbersOf(*call.binding);
  list::UpdateLists<0b1101, 4>(
      call, {&call.outputs[0], &call.inputs[1], &call.outputs[1], &call.outputs[2]},
      [&n](auto d, auto& x) {
        namespace hn = simd::hn;
        const auto set = [d](float number) { return hn::Set(d, number); };
        const auto g = x[1];
        x[2] = hn::MulAdd(set(n.beta1), x[2], hn::Mul(set(n.rest1), g));
        x[3] = hn::MulAdd(set(n.beta2), x[3], hn::Mul(hn::Mul(set(n.rest2), g), g));
        const auto below = hn::MulAdd(hn::Sqrt(x[3]), set(n.root_scale), set(n.eps));
        const auto rate = hn::Div(set(n.step), below);
        x[0] = hn::NegMulAdd(rate, x[2], hn::Mul(set(n.kept), x[0]));
      });
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(adamw) {
  return {
      .words =
          "inout p: f32[*]..., g: f32[*]..., inout m: f32[*]..., inout v: f32[*]...; "
          "lr: f64 = 1e-3 in [0, inf), beta1: f64 = 0.9 in [0, 1), beta2: f64 = 0.999 in [0, 1), "
          "eps: f64 = 1e-8 in [0, inf), weight_decay: f64 = 0.01 in [0, inf), "
          "step: i64 = 1 in [1, 4611686018427387904], arg_bytes: i64 = 4096 in {4096, 32764} "
          "flops 15*numel(p)",
      .summary = "A step of AdamW over a list of parameters",
      .formula =
          "m = beta1 m + (1-beta1) g; v = beta2 v + (1-beta2) g^2; p = p (1 - lr weight_decay) "
          "- lr (m/(1-beta1^step)) / (sqrt(v/(1-beta2^step)) + eps)",
      .notes =
          "Computed in f32, with coefficients that were computed in f64. v must not be negative: "
          "the root would be NaN. An eps below 1e-30 counts as that, unless it is 0. Squares of g "
          "are f32: from g = 6e20 on v overflows and p stands still, and below 1e-21 they are "
          "lost, so that with an eps near that p takes a far larger step, which is not verified. "
          "arg_bytes: how many bytes of arguments a launch of param_struct has on a GPU; nothing "
          "else depends on it.",
      .validate = CheckAdam,
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

struct AdamW {
  using Element = float;
  static constexpr int kOperands = 4;  // p, g, m, v
  static constexpr unsigned kReads = 0b1111, kWrites = 0b1101;
  AdamNumbers n;
  __device__ void operator()(float (&x)[kOperands]) const {
    const float g = x[1];
    x[2] = n.beta1 * x[2] + n.rest1 * g;
    x[3] = n.beta2 * x[3] + n.rest2 * g * g;
    // The quotient first: it is small where m is large.
    const float rate = n.step / (sqrtf(x[3]) * n.root_scale + n.eps);
    x[0] = n.kept * x[0] - rate * x[2];
  }
};

std::vector<cuda::list::Step> Steps(const AdamNumbers& n) {
  enum : int { kP, kG, kM, kV, kTemporary };
  return {{Do::kScale, kP, kP, kP, n.kept},
          {Do::kScale, kM, kM, kM, n.beta1},
          {Do::kScale, kTemporary, kG, kG, n.rest1},
          {Do::kAdd, kM, kM, kTemporary},
          {Do::kScale, kV, kV, kV, n.beta2},
          {Do::kScale, kTemporary, kG, kG, n.rest2},
          {Do::kMultiply, kTemporary, kTemporary, kG},
          {Do::kAdd, kV, kV, kTemporary},
          {Do::kRoot, kTemporary, kV, kV},
          {Do::kScale, kTemporary, kTemporary, kTemporary, n.root_scale},
          {Do::kShift, kTemporary, kTemporary, kTemporary, n.eps},
          {Do::kDivide, kTemporary, kM, kTemporary},
          {Do::kScale, kTemporary, kTemporary, kTemporary, n.step},
          {Do::kSubtract, kP, kP, kTemporary}};
}

absl::Status Run(const Call& call, cuda::list::Rung rung) {
  const AdamNumbers numbers = AdamNumbersOf(*call.binding);
  return cuda::list::Run(call, rung,
                         cuda::list::Recipe<AdamW>{.op = {numbers},
                                                   .operands = {&call.outputs[0], &call.inputs[1],
                                                                &call.outputs[1], &call.outputs[2]},
                                                   .steps = Steps(numbers),
                                                   .temporaries = 1});
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(adamw) {
  return cuda::list::Ladder<Run>({.list = "p", .elements = "4", .operands = 4, .temporaries = 1});
}

#endif  // __CUDACC__
