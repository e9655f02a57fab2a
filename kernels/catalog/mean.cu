// Mean over one dimension: the input is [A, N, B], the output is [A, B]. A sum, divided before it
// is rounded: a sum of f16 that is rounded first is infinite from 65,520 on, whatever its mean.
//
//   naive      for each output, one term after the other: N roundings add up
//   simd       the sums of sum_simd.h, divided in double
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200:
//   naive      267 us: one thread for each output: neighbouring threads read a row's length apart
//   two_pass   61 us: parts are summed by blocks, then their sums (reduce_cuda.cuh): neighbours
//              read neighbours, 16 bytes each

#include "kernels/api/kernel.h"
#include "kernels/catalog/reduce_sizes.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_reference.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/sum_simd.h"

namespace gridclock {
namespace {

using reduce::FirstTerm;
using reduce::Sizes;
using reduce::SizesOf;
using reduce::SumOfMagnitudes;
using reduce::Terms;

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const Line terms = reduce::TermsOf(binding, unit);
  ReferenceSum sum;
  for (std::int64_t k = 0; k < terms.length; ++k) sum += in(0, terms.at(k));
  const auto count = static_cast<double>(terms.length);
  result[0] = count == 0 ? std::nan("") : sum.Over(count);
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  result[0] = SumOfMagnitudes(binding, in, unit, output) / static_cast<double>(Terms(binding));
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const T* x = call.In<T>(0) + FirstTerm(s, i);
      Wide<T> sum = 0;
      for (std::int64_t k = 0; k < s.n; ++k) sum += Widen(x[k * s.inner]);
      call.Out<T>(0)[i] = Narrow<T>(sum / static_cast<Wide<T>>(s.n));
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return sum::Simd(call, static_cast<double>(call.binding->Dim("N")));
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(mean) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 in [-8, 7] "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "The mean over one dimension",
      .formula = "y[a, b] = (sum over k of x[a, k, b]) / N",
      .notes =
          "Accumulated in f32 (f64 for f64), rounded once at the end; simd joins its parts in "
          "f64. The mean of nothing is NaN. Where the magnitudes of the terms come to more than "
          "3.4e38 (f64: 1.8e308), the result is the mean, an infinity or NaN, as the order has it: "
          "the mean of two numbers of 3e38 is infinite, but for long rows of simd.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude,
                    .reach = SumOfMagnitudes},
      .cpu = {{"naive", "One term after the other: N roundings add up", Naive},
              {"simd", "Many sums side by side, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/reduce_cuda.cuh"

namespace gridclock {
namespace {

using reduce::NaiveVariant;
using reduce::TwoPassVariant;

template <typename T>
struct Mean : reduce::SumOp<T> {
  static Mean Make(const reduce::Sizes& s) {
    Mean mean;
    mean.divisor = static_cast<cuda::Wide<T>>(s.n);
    return mean;
  }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(mean) {
  return {{"naive", "One thread for each output, one term after the other", NaiveVariant<Mean>},
          {"two_pass",
           "Parts are summed by blocks, 16 bytes or a row of columns at a time; then their sums",
           TwoPassVariant<Mean>, reduce::kScratchOfValues}};
}

#endif  // __CUDACC__
