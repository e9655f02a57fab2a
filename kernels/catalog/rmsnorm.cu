// Normalisation by the root mean square over the last dimension:
// y[i] = x[i] / sqrt(mean of x[j]^2 + eps) * weight[i]. Layer normalisation without the mean: one
// sum in place of two, and none that cancels.
//
//   naive     two passes, one thread
//   simd      parts of a row in vectors, on every core, joined in double
//
// On a GPU, by the kernels of rows_cuda.cuh and rows_streamed_cuda.cuh; times are of 65536 rows of
// 1024 f32 on an H200, and of 1024 rows of 131,072:
//   naive       1.71 ms: one thread for each row, two passes; neighbouring threads read a row's
//               length apart
//   online      143 us, 394 us: one block for each row, two readings
//   shared      134 us, 343 us: a row stays in the shared memory of a block, or of a cluster of
//               them: read once
//   streamed    139 us, 290 us: rows stream through blocks, or clusters of them, that keep weight
//               in their registers: it is read once for all rows of a block. No gain where rows are
//               short, and with them weight
//   registers   132 us: a row stays in the registers of a warp: read once

#include "kernels/api/kernel.h"
#include "kernels/catalog/norm_eps.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/rows_simd.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

using rows::EpsOf;

// Infinite where the type of the sums ends.
double Square(double x, DType dtype) {
  const double most = dtype == DType::kF64 ? std::numeric_limits<double>::max()
                                           : double{std::numeric_limits<float>::max()};
  return x * x > most ? std::numeric_limits<double>::infinity() : x * x;
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  const DType dtype = binding.inputs[0].tensors[0].dtype;
  ReferenceSum mean;
  for (std::int64_t i = 0; i < n; ++i) {
    mean += Square(in(0, first + i), dtype) / static_cast<double>(n);
  }
  const double root = std::sqrt(static_cast<double>(mean) +
                                std::max(binding.F64("eps"), rows::LeastNormal(binding)));
  for (std::int64_t i = 0; i < n; ++i) {
    result[static_cast<std::size_t>(i)] = in(0, first + i) / root * in(1, i);
  }
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  const double least = rows::LeastNormal(binding);
  Expected(binding, in, unit, output, result);
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = std::fabs(result[i]) + least * std::fabs(in(1, static_cast<std::int64_t>(i)));
  }
}

// A square that overflows alone does so in any order.
double Reach(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  const DType dtype = binding.inputs[0].tensors[0].dtype;
  double squares = 0;
  for (std::int64_t i = first; i < first + n; ++i) {
    const double square = Square(in(0, i), dtype);
    if (std::isinf(square)) return 0;
    squares += square;
  }
  return squares;
}

template <typename T>
void NaiveRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  W squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += W{Widen(x[i])} * W{Widen(x[i])};
  const W factor = 1 / std::sqrt(squares / static_cast<W>(n) + EpsOf<W>(call));
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = Narrow<T>(Widen(x[i]) * factor * Widen(call.In<T>(1)[i]));
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::OneByOne<T>(call, [&](const T* x, T* y, std::int64_t n) { NaiveRow(call, x, y, n); });
    return absl::OkStatus();
  });
}

template <typename T>
struct RmsNorm {
  struct State {
    double count = 0, squares = 0;
  };
  const T* weight;
  double eps;

  State Part(const T* x, std::int64_t n) const {
    return {static_cast<double>(n),
            rows::SumOf<T>(x, n, [](auto v) { return simd::hn::Mul(v, v); })};
  }
  State Join(const State& a, const State& b) const {
    return {a.count + b.count, a.squares + b.squares};
  }
  void Write(const T* x, T* y, std::int64_t begin, std::int64_t end, const State& s,
             bool stream) const {
    namespace hn = simd::hn;
    const simd::Tag<T> d;
    const auto factor = hn::Set(d, static_cast<Wide<T>>(1 / std::sqrt(s.squares / s.count + eps)));
    const auto quotient = [&](auto, auto v, auto w) { return hn::Mul(hn::Mul(v, factor), w); };
    simd::MapRange<T>(quotient, y, begin, end, stream, x, weight);
  }
  bool Short(const T*, T*, std::int64_t, bool) const { return false; }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::Simd<T>(call, RmsNorm<T>{call.In<T>(1), EpsOf<Wide<T>>(call)});
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(rmsnorm) {
  return {
      .words =
          "x: T[*, N], weight: T[N] -> y: T[*, N]; eps: f64 = 1e-6 in (0, 1] "
          "where T in {f64, f32, f16, bf16}",
      .summary = "Normalisation by the root mean square over the last dimension",
      .formula = "y[i] = x[i] / sqrt(mean(x^2) + eps) * weight[i]",
      .notes =
          "Computed in f32 (f64 for f64); simd joins the parts of a row in f64. A row with NaN is "
          "NaN throughout; with an infinity it is 0, and NaN where the infinity stands. Where "
          "a square overflows (an element from 1.8e19 on; f64: 1.3e154) the row is 0; where their "
          "sum alone does, it may be 0 as well, by the variant. An eps below the least normal "
          "number counts as that.",
      .reference = rows::EachRow(Expected, Magnitude, Reach),
      .cpu = {{"naive", "Two passes over each row, one thread", Naive},
              {"simd", "By parts, in vectors, on every core; joined in f64", Simd}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/rows_cuda.cuh"
#include "kernels/catalog/rows_streamed_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;
using rows::EpsOf;
using rows::OnlineVariant;
using rows::RegistersVariant;
using rows::Rows;
using rows::RowsOf;
using rows::SharedVariant;
using rows::StreamedVariant;

// --- naive ---

template <typename T>
__global__ void NaiveKernel(const T* x, const T* weight, T* y, Rows rows, Wide<T> eps) {
  using W = Wide<T>;
  for (std::int64_t r = cuda::GridThread(); r < rows.count; r += cuda::GridThreads()) {
    const T* from = x + r * rows.length;
    T* to = y + r * rows.length;
    W squares = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) squares += Widen(from[i]) * Widen(from[i]);
    const W factor = 1 / sqrt(squares / static_cast<W>(rows.length) + eps);
    for (std::int64_t i = 0; i < rows.length; ++i) {
      to[i] = Narrow<T>(Widen(from[i]) * factor * Widen(weight[i]));
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
                        call.In<T>(0), call.In<T>(1), call.Out<T>(0), rows, EpsOf<Wide<T>>(call));
  });
}

// --- online, shared, registers: what of a row is computed ---

template <typename T>
struct RmsNorm {
  using Element = T;
  using W = Wide<T>;
  struct State {
    W squares;
  };
  struct Row {
    W factor;
  };
  static constexpr bool kReadsColumns = true;
  template <int kLanes>
  struct Columns {
    Pack<T, kLanes> weight;
  };

  const T* weight;
  W eps;

  static RmsNorm Make(const Call& call) { return {call.In<T>(1), EpsOf<W>(call)}; }

  static __device__ State Nothing() { return {0}; }
  static __device__ W Padding() { return 0; }
  static __device__ State Join(const State& a, const State& b) { return {a.squares + b.squares}; }
  template <int kMany>
  static __device__ State Add(const State& s, const W (&v)[kMany], int) {
    W squares = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) squares += v[i] * v[i];
    return {s.squares + squares};
  }

  __device__ Row RowOf(const State& s, std::int64_t length) const {
    return {1 / sqrt(s.squares / static_cast<W>(length) + eps)};
  }
  template <int kMany>
  static __device__ State OfLanes(const W (&v)[kMany], int count, W) {
    return {rows::SumOfWarp(Add(Nothing(), v, count).squares)};
  }
  static __device__ State JoinLanes(const State& s, W) {
    return {rows::SumOfWarp(s.squares)};
  }
  template <int kMany>
  __device__ Row OfWarp(const W (&v)[kMany], int count, std::int64_t length) const {
    return RowOf(OfLanes(v, count, static_cast<W>(length)), length);
  }

  template <int kLanes>
  __device__ Columns<kLanes> ColumnsAt(std::int64_t pack) const {
    return {reinterpret_cast<const Pack<T, kLanes>*>(weight)[pack]};
  }
  template <class AnyColumns>
  __device__ W Finish(W x, const Row& row, const AnyColumns& columns, int lane) const {
    return x * row.factor * Widen(columns.weight.lane[lane]);
  }
  template <class AnyColumns>
  __device__ W FinishKept(W x, const Row& row, const AnyColumns& columns, int lane) const {
    return Finish(x, row, columns, lane);
  }
};

// As rows::kStreamedTakes, less where a row's one reduction leaves a block little to wait for (f32,
// 8192 rows of 8192, H200: 142 us, `shared` 136).
constexpr const char* kStreamedTakes =
    "when sm >= 90 && sm < 120 && N <= min(131072, 524288 / sizeof(T)) && "
    "(N <= 4096 / sizeof(T) || (sizeof(T) == 2 && N > 4096 && N <= 8192) || "
    "N > 65536 / sizeof(T))";

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(rmsnorm) {
  return {
      {"naive", "One thread for each row, two passes", Naive},
      {"online", "One block for each row, two passes", OnlineVariant<RmsNorm>},
      {"shared", "A row stays in the shared memory of a block, or of a cluster of them: read once",
       SharedVariant<RmsNorm>, rows::kSharedTakes},
      {"streamed", "Rows stream through blocks that keep weight in registers",
       StreamedVariant<RmsNorm>, kStreamedTakes},
      {"registers", "A row stays in the registers of one warp: read once",
       RegistersVariant<RmsNorm>, rows::kRegistersTake}};
}

#endif  // __CUDACC__
