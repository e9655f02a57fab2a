// Maximum over one dimension: the input is [A, N, B], the output is [A, B]. A maximum has no
// rounding, so it may be taken in any order; what needs care is NaN, which no comparison finds: the
// usual `x > best` leaves it out, and so does fmax.
//
//   naive      for each output, one element after the other
//   simd       many maxima side by side, in vectors, on every core (extreme_simd.h)
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200:
//   naive      268 us: one thread for each output: neighbouring threads read a row's length apart
//   two_pass   60 us: maxima of parts by blocks, then their maximum (reduce_cuda.cuh): neighbours
//              read neighbours, 16 bytes each; in f32, and what is widened to it, by an instruction
//              that keeps NaN

#include "kernels/api/kernel.h"
#include "kernels/catalog/reduce_sizes.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/extreme_simd.h"
#include "kernels/catalog/reduce_reference.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

using reduce::FirstTerm;
using reduce::Sizes;
using reduce::SizesOf;

std::int64_t Terms(const Binding& binding) {
  return binding.Dim("N");
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const Line terms = reduce::TermsOf(binding, unit);
  double largest = in(0, terms.first);
  for (std::int64_t k = 1; k < terms.length; ++k) {
    const double x = in(0, terms.at(k));
    if (std::isnan(x) || x > largest) largest = x;
  }
  result[0] = largest;
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const T* x = call.In<T>(0) + FirstTerm(s, i);
      T largest = x[0];
      for (std::int64_t k = 1; k < s.n; ++k) {
        const Wide<T> v = Widen(x[k * s.inner]);
        if (v > Widen(largest) || v != v) largest = x[k * s.inner];
      }
      call.Out<T>(0)[i] = largest;
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    T* y = call.Out<T>(0);
    extreme::Simd<T, /*kPlaces=*/false>(call, [y](std::int64_t i, const extreme::Place<T>& found) {
      y[i] = Narrow<T>(found.value);
    });
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(max) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 in [-8, 7] "
          "where T in {f64, f32, f16, bf16}, N >= 1",
      .summary = "The largest element over one dimension",
      .formula = "y[a, b] = max over k of x[a, k, b]",
      .notes = "Exact. NaN if any of the elements is NaN. -0 and 0 are equal: either may come.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = One,
                    .unit_terms = Terms,
                    .roundings = Roundings::kNone},
      .cpu = {{"naive", "One element after the other", Naive},
              {"simd", "Many maxima side by side, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/reduce_cuda.cuh"

namespace gridclock {
namespace {

using reduce::NaiveVariant;
using reduce::TwoPassVariant;

// A NaN that came first stays: nothing is larger.
template <typename W>
__device__ W Larger(W a, W b) {
  return b > a || b != b ? b : a;
}
// In one instruction, as an addition is.
__device__ inline float Larger(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return Larger<float>(a, b);
#endif
}

template <typename T>
struct Max {
  using Element = T;
  using Result = T;
  using W = cuda::Wide<T>;
  struct State {
    W largest;
  };
  static constexpr int kStates = 8;
  static Max Make(const reduce::Sizes&) { return {}; }

  static __device__ State Nothing() { return {-cuda::Infinity<W>()}; }
  static __device__ State Join(const State& a, const State& b) {
    return {Larger(a.largest, b.largest)};
  }
  static __device__ State Add(const State& s, T x, std::int64_t) {
    return Join(s, {cuda::Widen(x)});
  }
  __device__ T Finish(const State& s) const { return cuda::Narrow<T>(s.largest); }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(max) {
  return {{"naive", "One thread for each output, one element after the other", NaiveVariant<Max>},
          {"two_pass",
           "Maxima of parts by blocks, 16 bytes or a row of columns at a time; then their maximum",
           TwoPassVariant<Max>, reduce::kScratchOfValues}};
}

#endif  // __CUDACC__
