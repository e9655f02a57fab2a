// Logarithm of softmax over the last dimension: y[i] = x[i] - m - log(sum of exp(x[j] - m)), with m
// the maximum of x. Not log(softmax(x)): that is log(0) wherever an exponential underflows, from
// 104 below the maximum on in f32, where y itself is a plain number.
//
//   naive    three passes: the maximum, the sum, the differences
//   online   two passes: when a larger maximum turns up, the sum so far is rescaled
//   simd     online by blocks, in vectors, on every core; few long rows are cut between the cores
//
// On a GPU, by the same kernels as softmax (rows_cuda.cuh); times are of 65536 rows of 1024 f32 on
// an H200:
//   naive       1.95 ms: one thread for each row, three passes; neighbouring threads read a row's
//               length apart
//   online      143 us: one block for each row, two passes; neighbours read neighbours
//   shared      128 us: a row stays in the shared memory of a block, or of a cluster of them: read
//               once. Of 1024 rows of 131,072 300 us, where online takes 391
//   registers   129 us: a row stays in the registers of a warp: read once. No gain over shared, as
//               what is left is memory's time

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/rows_simd.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/softmax_simd.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  double largest = in(0, first);
  for (std::int64_t i = 1; i < n; ++i) largest = std::fmax(largest, in(0, first + i));
  ReferenceSum sum;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(in(0, first + i) - largest);
  const double log_sum = std::log(static_cast<double>(sum));
  for (std::int64_t i = 0; i < n; ++i) {
    result[static_cast<std::size_t>(i)] = in(0, first + i) - largest - log_sum;
  }
}

// x - m has a rounding of its own size, log(sum) too; and what of the sum is rounded away, relative
// to it, comes out of the logarithm as it is: as a part of 1.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  Expected(binding, in, unit, output, result);
  for (double& r : result) r = 1 + std::fabs(r);
}

template <typename T>
void Differences(const T* x, T* y, std::int64_t n, const softmax::Partial<Wide<T>>& p) {
  const Wide<T> log_sum = std::log(p.sum);
  for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(Widen(x[i]) - p.largest - log_sum);
}

template <typename T>
void NaiveRow(const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  softmax::Partial<W> p;
  for (std::int64_t i = 0; i < n; ++i) p.largest = std::max(p.largest, W{Widen(x[i])});
  for (std::int64_t i = 0; i < n; ++i) p.sum += std::exp(Widen(x[i]) - p.largest);
  Differences(x, y, n, p);
}

template <typename T>
void OnlineRow(const T* x, T* y, std::int64_t n) {
  Differences(x, y, n, softmax::OnlinePartial(x, n));
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::OneByOne<T>(call, NaiveRow<T>);
    return absl::OkStatus();
  });
}

absl::Status Online(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::OneByOne<T>(call, OnlineRow<T>);
    return absl::OkStatus();
  });
}

template <typename T>
struct LogSoftmax : softmax::Exponentials<T> {
  using State = softmax::Partial<Wide<T>>;

  void Write(const T* x, T* y, std::int64_t begin, std::int64_t end, const State& p,
             bool stream) const {
    namespace hn = simd::hn;
    const simd::Tag<T> d;
    const auto largest = hn::Set(d, p.largest), log_sum = hn::Set(d, std::log(p.sum));
    const auto difference = [&](auto, auto v) { return hn::Sub(hn::Sub(v, largest), log_sum); };
    simd::MapRange<T>(difference, y, begin, end, stream, x);
  }
  bool Short(const T*, T*, std::int64_t, bool) const { return false; }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::Simd<T>(call, LogSoftmax<T>());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(log_softmax) {
  return {
      .words = "x: T[*, N] -> y: T[*, N] over x where T in {f64, f32, f16, bf16}",
      .summary = "Logarithm of softmax over the last dimension",
      .formula = "y[i] = x[i] - max(x) - log(sum(exp(x[j] - max(x))))",
      .notes =
          "Computed in f32 (f64 for f64). -inf gives -inf; a row with NaN or +inf, or of -inf "
          "alone, is NaN throughout.",
      .reference = rows::EachRow(Expected, Magnitude),
      .cpu = {{"naive", "Three passes over each row, one thread", Naive},
              {"online", "Two passes: the sum is rescaled when a larger maximum turns up", Online},
              {"simd", "Online by blocks, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/rows_cuda.cuh"
#include "kernels/catalog/softmax_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Infinity;
using cuda::Narrow;
using cuda::Wide;
using cuda::Widen;
using rows::OnlineVariant;
using rows::RegistersVariant;
using rows::Rows;
using rows::RowsOf;
using rows::SharedVariant;
using softmax::Term;

// --- naive ---

template <typename T>
__global__ void NaiveKernel(const T* x, T* y, Rows rows) {
  using W = Wide<T>;
  for (std::int64_t r = cuda::GridThread(); r < rows.count; r += cuda::GridThreads()) {
    const T* from = x + r * rows.length;
    T* to = y + r * rows.length;
    W largest = -Infinity<W>();
    for (std::int64_t i = 0; i < rows.length; ++i) largest = max(largest, Widen(from[i]));
    W sum = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) sum += exp(Widen(from[i]) - largest);
    const W log_sum = log(sum);
    for (std::int64_t i = 0; i < rows.length; ++i) {
      to[i] = Narrow<T>(Widen(from[i]) - largest - log_sum);
    }
  }
}

absl::Status Naive(const Call& call) {
  const Rows rows = RowsOf(call);
  if (rows.count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    constexpr std::int64_t kThreads = 128;
    return cuda::Launch(call, NaiveKernel<T>,
                        {.grid = {cuda::Blocks(rows.count, kThreads)}, .block = {kThreads}},
                        call.In<T>(0), call.Out<T>(0), rows);
  });
}

// --- online, shared, registers: what of a row is computed ---

template <typename T>
struct LogSoftmax : softmax::Exponentials<T> {
  using W = Wide<T>;
  struct Row {
    W largest, log_sum;
  };
  static LogSoftmax Make(const Call&) { return {}; }

  __device__ Row RowOf(const typename softmax::Exponentials<T>::State& s, std::int64_t) const {
    return {s.largest, log(s.sum)};
  }
  // One subtraction after the other: their sum would lose what the maximum has beyond the
  // logarithm.
  template <class Columns>
  __device__ W Finish(W x, const Row& row, const Columns&, int) const {
    return x - row.largest - row.log_sum;
  }

  template <int kMany>
  __device__ Row OfWarp(const W (&v)[kMany], int, std::int64_t) const {
    const W largest = LogSoftmax::LargestOf(v);
    W sum = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) sum += Term(v[i], largest);
    return {largest, log(rows::SumOfWarp(sum))};
  }
  template <class Columns>
  __device__ W FinishKept(W x, const Row& row, const Columns& columns, int lane) const {
    return Finish(x, row, columns, lane);
  }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(log_softmax) {
  return {
      {"naive", "One thread for each row, three passes", Naive},
      {"online", "One block for each row, two passes", OnlineVariant<LogSoftmax>},
      {"shared", "A row stays in the shared memory of a block, or of a cluster of them: read once",
       SharedVariant<LogSoftmax>, rows::kSharedTakes},
      {"registers", "A row stays in the registers of one warp: read once",
       RegistersVariant<LogSoftmax>, rows::kRegistersTake}};
}

#endif  // __CUDACC__
