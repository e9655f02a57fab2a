// Sum over one dimension: the input is [A, N, B], the output is [A, B].
//
//   naive      for each output, one term after the other: N roundings add up
//   pairwise   halves are summed apart and then added: log2(N) roundings, the same work
//   simd       many sums side by side, in vectors, on every core; joined in double
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200 (docs/optimizing.md has more shapes):
//   naive      267 us: one thread for each output: neighbouring threads read a row's length apart
//   cub        154 us: the library that every CUDA programmer has; rows alone. Long ones suit it:
//              8192 of 8192 take 60 us, as by two_pass, and one of 2^28 235 us, by two_pass 238
//   two_pass   60 us: parts are summed by blocks, then their sums: neighbours read neighbours, 16
//              bytes each; the same bits on every GPU. Of columns 66 us, where naive, with a thread
//              for each of 1024, takes 12.1 ms

#include "absl/strings/str_cat.h"
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
  result[0] = static_cast<double>(sum);
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  result[0] = SumOfMagnitudes(binding, in, unit, output);
}

template <typename T>
Wide<T> SumInOrder(const T* x, std::int64_t n, std::int64_t stride) {
  Wide<T> sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += Widen(x[k * stride]);
  return sum;
}

template <typename T>
Wide<T> SumPairwise(const T* x, std::int64_t n, std::int64_t stride) {
  constexpr std::int64_t kFew = 32;  // Below, the calls cost more than they save in roundings.
  if (n <= kFew) return SumInOrder(x, n, stride);
  return SumPairwise(x, n / 2, stride) + SumPairwise(x + n / 2 * stride, n - n / 2, stride);
}

// `sum` for each output element.
template <auto kSum, typename T>
void EachOutput(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
    call.Out<T>(0)[i] = Narrow<T>(kSum(call.In<T>(0) + FirstTerm(s, i), s.n, s.inner));
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachOutput<&SumInOrder<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Pairwise(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachOutput<&SumPairwise<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Simd(const Call& call) {
  return sum::Simd(call, 1);
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(sum) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 in [-8, 7] "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "The sum over one dimension",
      .formula = "y[a, b] = sum over k of x[a, k, b]",
      .notes =
          "Accumulated in f32 (f64 for f64), rounded once at the end; simd joins its parts in "
          "f64. The sum of nothing is 0. Where the magnitudes of the terms come to more than "
          "3.4e38 "
          "(f64: 1.8e308), the result is the sum, an infinity or NaN, as the order has it.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude,
                    .reach = SumOfMagnitudes},
      .cpu = {{"naive", "One term after the other: N roundings add up", Naive},
              {"pairwise", "Halves summed apart: log2(N) roundings", Pairwise},
              {"simd", "Many sums side by side, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include <algorithm>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/reduce_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Wide;
using reduce::NaiveVariant;
using reduce::Sizes;
using reduce::SizesOf;
using reduce::SumOp;
using reduce::TwoPassVariant;

// --- cub ---

// Sums wide whatever is read: the type of its result is the type that CUB keeps.
template <typename W>
struct Plus {
  __device__ W operator()(W a, W b) const { return a + b; }
};

struct RowBegin {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t row) const { return row * length; }
};

template <typename T>
cudaError_t CubSum(const Call& call, const Sizes& s, void* temp, std::size_t* bytes) {
  using W = Wide<T>;
  const auto stream = static_cast<cudaStream_t>(call.stream);
  if (s.outer == 1) {
    return cub::DeviceReduce::Reduce(temp, *bytes, call.In<T>(0), call.Out<T>(0), s.n, Plus<W>(),
                                     W{0}, stream);
  }
  const auto begins = thrust::make_transform_iterator(
      thrust::make_counting_iterator(std::int64_t{0}), RowBegin{s.n});
  return cub::DeviceSegmentedReduce::Reduce(temp, *bytes, call.In<T>(0), call.Out<T>(0), s.outer,
                                            begins, begins + 1, Plus<W>(), W{0}, stream);
}

absl::Status Cub(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    std::size_t wanted = 0;
    GC_RETURN_IF_ERROR(cuda::ToStatus(CubSum<T>(call, s, nullptr, &wanted), "cub"));
    auto declared = static_cast<std::size_t>(Bytes(call.scratch[0].value->tensors[0]));
    if (wanted > declared) {
      return absl::InternalError(absl::StrCat(
          "sum.cub: CUB wants ", wanted, " bytes of scratch, the variant declares ", declared));
    }
    cuda::CountLaunch(call);
    return cuda::ToStatus(CubSum<T>(call, s, call.scratch[0].data[0], &declared), "cub");
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(sum) {
  return {{"naive", "One thread for each output, one term after the other", NaiveVariant<SumOp>},
          {"cub", "CUB's DeviceReduce and DeviceSegmentedReduce", Cub,
           "when numel(B) == 1 scratch temp: u8[1048576]"},
          {"two_pass",
           "Parts are summed by blocks, 16 bytes or a row of columns at a time; then their sums",
           TwoPassVariant<SumOp>, reduce::kScratchOfValues}};
}

#endif  // __CUDACC__
