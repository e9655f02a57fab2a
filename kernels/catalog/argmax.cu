// The place of the maximum over one dimension: the input is [A, N, B], the output, of i64, is
// [A, B]. Where the maximum stands several times, the first place counts, and so does the first NaN
// where there is one: then parts may be searched in any order, and still give one answer.
//
//   naive      for each output, one element after the other
//   simd       the largest of each piece of a row in vectors; only a piece whose largest beats all
//              before is searched for the place. Columns carry their places beside them
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200:
//   naive      275 us: one thread for each output: neighbouring threads read a row's length apart
//   two_pass   70 us: parts by blocks, then their best: neighbours read neighbours, 16 bytes each.
//              Equal ones are told apart by their places; max, which has none to carry, takes 60 us

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
  std::int64_t place = 0;
  double largest = in(0, terms.first);
  for (std::int64_t k = 1; k < terms.length && !std::isnan(largest); ++k) {
    const double x = in(0, terms.at(k));
    if (!std::isnan(x) && x <= largest) continue;
    largest = x;
    place = k;
  }
  result[0] = static_cast<double>(place);
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const T* x = call.In<T>(0) + FirstTerm(s, i);
      std::int64_t place = 0;
      Wide<T> largest = Widen(x[0]);
      for (std::int64_t k = 1; k < s.n && largest == largest; ++k) {
        const Wide<T> v = Widen(x[k * s.inner]);
        if (v <= largest) continue;
        largest = v;
        place = k;
      }
      call.Out<std::int64_t>(0)[i] = place;
    }
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    std::int64_t* y = call.Out<std::int64_t>(0);
    extreme::Simd<T, /*kPlaces=*/true>(
        call, [y](std::int64_t i, const extreme::Place<T>& found) { y[i] = found.place; });
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(argmax) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: i64[*A, *B]; axis: i64 = -1 in [-8, 7] "
          "where T in {f64, f32, f16, bf16}, N >= 1",
      .summary = "The place of the largest element over one dimension",
      .formula = "y[a, b] = the least k with x[a, k, b] = max over j of x[a, j, b]",
      .notes =
          "Exact. Of equal elements the first counts (-0 equals 0). The first NaN, if there is "
          "one.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = One,
                    .unit_terms = Terms},
      .cpu = {{"naive", "One element after the other", Naive},
              {"simd", "Vectors on every core; only pieces that hold a new maximum are searched",
               Simd}},
  };
}

#else  // The GPU.
#include <limits>

#include "kernels/catalog/reduce_cuda.cuh"

namespace gridclock {
namespace {

using reduce::NaiveVariant;
using reduce::TwoPassVariant;

template <typename T>
struct ArgMax {
  using Element = T;
  using Result = std::int64_t;
  using W = cuda::Wide<T>;
  struct State {
    W value;
    std::int64_t place;
  };
  static constexpr int kStates = 1;
  static constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
  static ArgMax Make(const reduce::Sizes&) { return {}; }

  static __device__ State Nothing() { return {-cuda::Infinity<W>(), kNowhere}; }
  // Behind all of s: it must be larger, or the first NaN.
  static __device__ State Add(const State& s, T x, std::int64_t place) {
    const W v = cuda::Widen(x);
    return !(v <= s.value) && s.value == s.value ? State{v, place} : s;
  }
  static __device__ State Join(const State& a, const State& b) {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    const bool alike = a.value == b.value || (a_is_nan && b_is_nan);
    const bool b_is_better =
        alike ? b.place < a.place : b_is_nan || (!a_is_nan && b.value > a.value);
    return b_is_better ? b : a;
  }
  // Nothing beats what there is before the first element where all of them are -inf.
  __device__ std::int64_t Finish(const State& s) const { return s.place == kNowhere ? 0 : s.place; }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(argmax) {
  return {
      {"naive", "One thread for each output, one element after the other", NaiveVariant<ArgMax>},
      {"two_pass",
       "Places in parts by blocks, 16 bytes or a row of columns at a time; then the best of them",
       TwoPassVariant<ArgMax>, reduce::kScratchOfPlaces}};
}

#endif  // __CUDACC__
