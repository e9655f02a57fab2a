// Softmax over the last dimension: y[i] = exp(x[i] - m) / sum of exp(x[j] - m), m = max of x[j].
// Subtracting m changes nothing in exact arithmetic; without it exp overflows from x = 89 on in
// f32.
//
//   naive    three passes: the maximum, the sum, the quotients
//   online   two passes: when a larger maximum turns up, the sum so far is rescaled
//   simd     online by blocks, in vectors, on every core; few long rows are cut between the cores
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200 (docs/optimizing.md):
//   naive       1.91 ms: one thread for each row, three passes
//   online      144 us: one block for each row, two passes
//   shared      127 us: a row stays in the shared memory of a block, or of a cluster of them: read
//               once
//   registers   128 us: a row stays in the registers of a warp: read once, each exponential taken
//               once

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/rows_simd.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"
#include "kernels/catalog/softmax_simd.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  double largest = in(0, first);
  for (std::int64_t i = 1; i < n; ++i) largest = std::fmax(largest, in(0, first + i));
  ReferenceSum sum;
  for (std::int64_t i = 0; i < n; ++i) {
    const double e = std::exp(in(0, first + i) - largest);
    result[static_cast<std::size_t>(i)] = e;
    sum += e;
  }
  for (double& r : result) r /= static_cast<double>(sum);
}

// x - m carries a rounding of its own size into the exponent, so the error grows with |x - m|.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  Expected(binding, in, unit, output, result);
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  double largest = in(0, first);
  for (std::int64_t i = 1; i < n; ++i) largest = std::fmax(largest, in(0, first + i));
  for (std::int64_t i = 0; i < n; ++i) {
    result[static_cast<std::size_t>(i)] *= 1 + std::fabs(in(0, first + i) - largest);
  }
}

template <typename T>
void NaiveRow(const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  W largest = -std::numeric_limits<W>::infinity();
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, W{Widen(x[i])});
  W sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(Widen(x[i]) - largest);
  for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(std::exp(Widen(x[i]) - largest) / sum);
}

template <typename T>
void OnlineRow(const T* x, T* y, std::int64_t n) {
  const softmax::Partial<Wide<T>> p = softmax::OnlinePartial(x, n);
  for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(std::exp(Widen(x[i]) - p.largest) / p.sum);
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
struct Softmax : softmax::Exponentials<T> {
  using State = softmax::Partial<Wide<T>>;

  void Write(const T* x, T* y, std::int64_t begin, std::int64_t end, const State& p,
             bool stream) const {
    namespace hn = simd::hn;
    const simd::Tag<T> d;
    const auto largest = hn::Set(d, p.largest), factor = hn::Set(d, 1 / p.sum);
    const auto quotient = [&](auto, auto v) {
      return hn::Mul(simd::ExpUpToHigh(d, hn::Sub(v, largest)), factor);
    };
    simd::MapRange<T>(quotient, y, begin, end, stream, x);
  }

  // A row that is one block: its terms are kept, so that each exponential is taken once.
  bool Short(const T* x, T* y, std::int64_t n, bool stream) const {
    namespace hn = simd::hn;
    using W = Wide<T>;
    if (n > softmax::kBlock) return false;
    const simd::Tag<T> d;
    alignas(64) W terms[softmax::kBlock];
    const State p = softmax::BlockPartial(x, n, terms);
    if (p.largest == -std::numeric_limits<W>::infinity()) {
      Write(x, y, 0, n, p, stream);
      return true;
    }
    const auto factor = hn::Set(d, 1 / p.sum);
    simd::MapRange<T>([&](auto, auto v) { return hn::Mul(v, factor); }, y, 0, n, stream, terms);
    return true;
  }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::Simd<T>(call, Softmax<T>());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(softmax) {
  return {
      .words = "x: T[*, N] -> y: T[*, N] over x where T in {f64, f32, f16, bf16}",
      .summary = "Softmax over the last dimension",
      .formula = "y[i] = exp(x[i] - max(x)) / sum(exp(x[j] - max(x)))",
      .notes =
          "Computed in f32 (f64 for f64). -inf gives 0; a row with NaN or +inf, or of -inf alone, "
          "is NaN throughout.",
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
    for (std::int64_t i = 0; i < rows.length; ++i) {
      to[i] = Narrow<T>(exp(Widen(from[i]) - largest) / sum);
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

// --- online, shared, registers: what of a row is computed; rows_cuda.cuh does it ---

template <typename T>
struct Softmax : softmax::Exponentials<T> {
  using W = Wide<T>;
  struct Row {
    W largest, factor;
  };
  static Softmax Make(const Call&) { return {}; }

  __device__ Row RowOf(const typename softmax::Exponentials<T>::State& s, std::int64_t) const {
    return {s.largest, 1 / s.sum};
  }
  template <class Columns>
  __device__ W Finish(W x, const Row& row, const Columns&, int) const {
    return Term(x, row.largest) * row.factor;
  }

  // In registers each exponential is taken once: it stays in the place of its element.
  template <int kMany>
  __device__ Row OfWarp(W (&v)[kMany], int, std::int64_t) const {
    const W largest = Softmax::LargestOf(v);
    W sum = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) sum += v[i] = Term(v[i], largest);
    return {largest, 1 / rows::SumOfWarp(sum)};
  }
  template <class Columns>
  __device__ W FinishKept(W term, const Row& row, const Columns&, int) const {
    return term * row.factor;
  }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(softmax) {
  return {
      {"naive", "One thread for each row, three passes", Naive},
      {"online", "One block for each row, two passes", OnlineVariant<Softmax>},
      {"shared", "A row stays in the shared memory of a block, or of a cluster of them: read once",
       SharedVariant<Softmax>, rows::kSharedTakes},
      {"registers", "A row stays in the registers of one warp: read once, exp taken once",
       RegistersVariant<Softmax>, rows::kRegistersTake}};
}

#endif  // __CUDACC__
