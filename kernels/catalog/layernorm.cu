// Layer normalisation over the last dimension:
// y[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i], the mean and the variance
// those of the row. The short formula of the variance, mean(x^2) - mean(x)^2, is the difference of
// two large numbers where the mean is large: rows around 10,000 keep none of its digits in f32. All
// variants here sum the squares of distances from a mean instead.
//
//   naive     three passes: the mean, the variance, the quotients
//   welford   two passes: the mean and the squares are carried along together
//   simd      blocks of a row, two readings each in the first cache, joined by the distance of
//             their means (Chan, Golub and LeVeque, 1979); in vectors, on every core
//
// On a GPU, by the kernels of rows_cuda.cuh and rows_streamed_cuda.cuh; times are of 65536 rows of
// 1024 f32 on an H200, and of 1024 rows of 131,072:
//   naive       1.97 ms: one thread for each row, three passes; neighbouring threads read a row's
//               length apart
//   online      134 us, 423 us: one block for each row, two readings; batches of elements are
//               joined as parts are
//   shared      137 us, 429 us: a row stays in the shared memory of a block, or of a cluster of
//               them: read once. Two rows at a time where they fit, so that weight and bias are
//               read half as often. No gain at either length, but between: 8192 rows of 8192 take
//               152 us, and 194 by online
//   streamed    138 us, 318 us: rows stream through blocks, or clusters of them, that keep weight
//               and bias in their registers: these are read once for all rows of a block. No
//               gain where rows are short, and with them weight and bias
//   registers   132 us: a row stays in the registers of a warp: read once, and a true mean before
//               the squares

#include "kernels/api/kernel.h"
#include "kernels/catalog/norm_eps.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/rows_simd.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

using rows::EpsOf;

struct Moments {
  double mean = 0, deviation = 0, magnitude = 0;  // Deviation: with eps. Magnitude: mean of |x|.
};

Moments MomentsOf(const Binding& binding, ReferenceInput in, std::int64_t unit) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  const auto count = static_cast<double>(n);
  Moments m;
  ReferenceSum mean, variance;
  for (std::int64_t i = 0; i < n; ++i) {
    mean += in(0, first + i) / count;
    m.magnitude += std::fabs(in(0, first + i)) / count;
  }
  m.mean = static_cast<double>(mean);
  // Roundings of a mean far from zero would be the distances of equal elements.
  ReferenceSum off;
  for (std::int64_t i = 0; i < n; ++i) off += (in(0, first + i) - m.mean) / count;
  m.mean += static_cast<double>(off);
  for (std::int64_t i = 0; i < n; ++i) {
    const double distance = in(0, first + i) - m.mean;
    variance += distance * distance / count;
  }
  m.deviation = std::sqrt(static_cast<double>(variance) +
                          std::max(binding.F64("eps"), rows::LeastNormal(binding)));
  return m;
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const std::int64_t n = rows::LengthOf(binding);
  const Moments m = MomentsOf(binding, in, unit);
  for (std::int64_t i = 0; i < n; ++i) {
    const double distance = in(0, unit * n + i) - m.mean;
    result[static_cast<std::size_t>(i)] = distance / m.deviation * in(1, i) + in(2, i);
  }
}

// Roundings of the mean are as large as what was summed for it, and are divided by the deviation as
// everything is: far from zero they are most of the error. Those of the variance, a sum of one
// sign, are a part of the quotient, whatever of it the bias takes away; kept in order such a sum is
// off by 4 (sqrt(c) - 1) roundings (verify.h), where the tolerance counts 4 (4 + sqrt(c)) of up to
// 4096 terms.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  const std::int64_t n = rows::LengthOf(binding);
  const Moments m = MomentsOf(binding, in, unit);
  const double terms = std::sqrt(static_cast<double>(n));
  const double least = rows::LeastNormal(binding);
  const double of_variance = (terms - 1) / (4 + std::min(terms, 64.0));
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = in(0, unit * n + i);
    const double distance = std::fabs(x) + m.magnitude + of_variance * std::fabs(x - m.mean);
    result[static_cast<std::size_t>(i)] =
        (distance / m.deviation + least) * std::fabs(in(1, i)) + std::fabs(in(2, i));
  }
}

// Of the squares those from 0: a mean of large elements is off by a part of them, and so then are
// the distances from it.
double Reach(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  const std::int64_t n = rows::LengthOf(binding), first = unit * n;
  double sum = 0, squares = 0;
  for (std::int64_t i = first; i < first + n; ++i) {
    sum += std::fabs(in(0, i));
    squares += in(0, i) * in(0, i);
  }
  return std::max(sum, squares);
}

// An element that equals the mean, but for the mean's roundings, times an infinite weight.
void Unsettled(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::vector<bool>& which) {
  const std::int64_t n = rows::LengthOf(binding);
  const Moments m = MomentsOf(binding, in, unit);
  const double roundings = 4 * (4 + std::sqrt(static_cast<double>(n))) * rows::Epsilon(binding);
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = in(0, unit * n + i);
    which[static_cast<std::size_t>(i)] =
        std::isinf(in(1, i)) && std::fabs(x - m.mean) <= roundings * (std::fabs(x) + m.magnitude);
  }
}

template <typename T>
void Quotients(const Call& call, const T* x, T* y, std::int64_t n, Wide<T> mean, Wide<T> squares) {
  const Wide<T> factor = 1 / std::sqrt(squares / static_cast<Wide<T>>(n) + EpsOf<Wide<T>>(call));
  for (std::int64_t i = 0; i < n; ++i) {
    y[i] = Narrow<T>((Widen(x[i]) - mean) * factor * Widen(call.In<T>(1)[i]) +
                     Widen(call.In<T>(2)[i]));
  }
}

template <typename T>
void NaiveRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  W sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += Widen(x[i]);
  const W mean = sum / static_cast<W>(n);
  W squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const W distance = Widen(x[i]) - mean;
    squares += distance * distance;
  }
  Quotients(call, x, y, n, mean, squares);
}

// Welford, 1962: each element moves the mean by its share, and adds the product of its distances
// from the mean before and after.
template <typename T>
void WelfordRow(const Call& call, const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  W mean = 0, squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const W before = Widen(x[i]) - mean;
    mean += before / static_cast<W>(i + 1);
    squares += before * (Widen(x[i]) - mean);
  }
  Quotients(call, x, y, n, mean, squares);
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::OneByOne<T>(call, [&](const T* x, T* y, std::int64_t n) { NaiveRow(call, x, y, n); });
    return absl::OkStatus();
  });
}

absl::Status Welford(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::OneByOne<T>(call, [&](const T* x, T* y, std::int64_t n) { WelfordRow(call, x, y, n); });
    return absl::OkStatus();
  });
}

template <typename T>
struct LayerNorm {
  struct State {
    double count = 0, mean = 0, squares = 0;  // Squares: of the distances from the mean.
  };
  const T* weight;
  const T* bias;
  double eps;

  State Part(const T* x, std::int64_t n) const {
    constexpr std::int64_t kBlock = 2048;  // Stays in the first cache between its two readings.
    State s;
    for (std::int64_t i = 0; i < n; i += kBlock) {
      s = Join(s, Block(x + i, std::min(kBlock, n - i)));
    }
    return s;
  }

  State Block(const T* x, std::int64_t n) const {
    const auto count = static_cast<double>(n);
    const double mean = rows::SumOf<T>(x, n, [](auto v) { return v; }) / count;
    const auto center = simd::hn::Set(simd::Tag<T>(), static_cast<Wide<T>>(mean));
    const auto square = [&](auto v) {
      const auto distance = simd::hn::Sub(v, center);
      return simd::hn::Mul(distance, distance);
    };
    return {count, mean, rows::SumOf<T>(x, n, square)};
  }

  State Join(const State& a, const State& b) const {
    const double count = a.count + b.count, share = b.count / count, distance = b.mean - a.mean;
    return {count, a.mean + distance * share,
            a.squares + b.squares + distance * share * (distance * a.count)};
  }

  void Write(const T* x, T* y, std::int64_t begin, std::int64_t end, const State& s,
             bool stream) const {
    namespace hn = simd::hn;
    const simd::Tag<T> d;
    const auto mean = hn::Set(d, static_cast<Wide<T>>(s.mean));
    const auto factor = hn::Set(d, static_cast<Wide<T>>(1 / std::sqrt(s.squares / s.count + eps)));
    const auto quotient = [&](auto, auto v, auto w, auto b) {
      return hn::MulAdd(hn::Mul(hn::Sub(v, mean), factor), w, b);
    };
    simd::MapRange<T>(quotient, y, begin, end, stream, x, weight, bias);
  }
  bool Short(const T*, T*, std::int64_t, bool) const { return false; }
};

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    rows::Simd<T>(call, LayerNorm<T>{call.In<T>(1), call.In<T>(2), EpsOf<Wide<T>>(call)});
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(layernorm) {
  return {
      .words =
          "x: T[*, N], weight: T[N], bias: T[N] -> y: T[*, N]; eps: f64 = 1e-5 in (0, 1] "
          "where T in {f64, f32, f16, bf16}",
      .summary = "Layer normalisation over the last dimension",
      .formula = "y[i] = (x[i] - mean(x)) / sqrt(var(x) + eps) * weight[i] + bias[i]",
      .notes =
          "Computed in f32 (f64 for f64); simd joins the parts of a row in f64. The variance is of "
          "distances from the mean, so that rows far from zero keep it; that of N elements, not of "
          "N - 1. A row with NaN or an infinity is NaN throughout. An eps below the least normal "
          "number counts as that. Where the squares of a row come to more than 3.4e38 (f64: "
          "1.8e308; an element of 1.8e19 is enough, or 1.3e154), or its magnitudes do, it may be "
          "the bias or NaN as well, by the variant.",
      .reference = rows::EachRow(Expected, Magnitude, Reach, Unsettled),
      .cpu = {{"naive", "Three passes over each row, one thread", Naive},
              {"welford", "Two passes: mean and squares are carried along together", Welford},
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
__global__ void NaiveKernel(const T* x, const T* weight, const T* bias, T* y, Rows rows,
                            Wide<T> eps) {
  using W = Wide<T>;
  const W n = static_cast<W>(rows.length);
  for (std::int64_t r = cuda::GridThread(); r < rows.count; r += cuda::GridThreads()) {
    const T* from = x + r * rows.length;
    T* to = y + r * rows.length;
    W sum = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) sum += Widen(from[i]);
    const W mean = sum / n;
    W squares = 0;
    for (std::int64_t i = 0; i < rows.length; ++i) {
      const W distance = Widen(from[i]) - mean;
      squares += distance * distance;
    }
    const W factor = 1 / sqrt(squares / n + eps);
    for (std::int64_t i = 0; i < rows.length; ++i) {
      to[i] = Narrow<T>((Widen(from[i]) - mean) * factor * Widen(weight[i]) + Widen(bias[i]));
    }
  }
}

absl::Status Naive(const Call& call) {
  const Rows rows = RowsOf(call);
  if (rows.count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    constexpr std::int64_t kThreads = 128;
    return cuda::Launch(
        call, NaiveKernel<T>, {.grid = {cuda::Blocks(rows.count, kThreads)}, .block = {kThreads}},
        call.In<T>(0), call.In<T>(1), call.In<T>(2), call.Out<T>(0), rows, EpsOf<Wide<T>>(call));
  });
}

// --- online, shared, registers: what of a row is computed ---

template <typename T>
struct LayerNorm {
  using Element = T;
  using W = Wide<T>;
  struct State {
    W count, mean, squares;  // Squares: of the distances from the mean.
  };
  struct Row {
    W mean, factor;
  };
  static constexpr bool kReadsColumns = true;
  template <int kLanes>
  struct Columns {
    Pack<T, kLanes> weight, bias;
  };

  const T* weight;
  const T* bias;
  W eps;

  static LayerNorm Make(const Call& call) { return {call.In<T>(1), call.In<T>(2), EpsOf<W>(call)}; }

  static __device__ State Nothing() { return {0, 0, 0}; }
  static __device__ W Padding() { return 0; }

  // The squares of both are as if taken from the common mean, whose distance from either mean is
  // known.
  static __device__ State Join(const State& a, const State& b) {
    const W count = a.count + b.count;
    if (b.count == 0) return a;  // Whose mean would be multiplied by nothing, and may be infinite.
    const W share = b.count / count, distance = b.mean - a.mean;
    return {count, a.mean + distance * share,
            a.squares + b.squares + distance * share * (distance * a.count)};
  }

  template <int kMany>
  static __device__ State Add(const State& s, const W (&v)[kMany], int count) {
    if (count == 0) return s;
    W sum = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) sum += v[i];
    const W mean = sum / static_cast<W>(count);
    return Join(s, {static_cast<W>(count), mean, SquaresOf(v, count, mean)});
  }

  template <int kMany>
  static __device__ W SquaresOf(const W (&v)[kMany], int count, W mean) {
    W squares = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) {
      const W distance = i < count ? v[i] - mean : W{0};
      squares += distance * distance;
    }
    return squares;
  }

  __device__ Row RowOf(const State& s, std::int64_t length) const {
    return {s.mean, 1 / sqrt(s.squares / static_cast<W>(length) + eps)};
  }

  template <int kMany>
  static __device__ State OfLanes(const W (&v)[kMany], int count, W held) {
    W sum = 0;
#pragma unroll
    for (int i = 0; i < kMany; ++i) sum += v[i];
    sum = rows::SumOfWarp(sum);
    const W mean = held > 0 ? sum / held : 0;
    return {held, mean, rows::SumOfWarp(SquaresOf(v, count, mean))};
  }
  // As Join does, without a division for each pair.
  static __device__ State JoinLanes(const State& s, W held) {
    const W mean = rows::SumOfWarp(s.count * s.mean) / held, distance = s.mean - mean;
    return {held, mean, rows::SumOfWarp(s.squares + s.count * distance * distance)};
  }
  template <int kMany>
  __device__ Row OfWarp(const W (&v)[kMany], int count, std::int64_t length) const {
    return RowOf(OfLanes(v, count, static_cast<W>(length)), length);
  }

  template <int kLanes>
  __device__ Columns<kLanes> ColumnsAt(std::int64_t pack) const {
    return {reinterpret_cast<const Pack<T, kLanes>*>(weight)[pack],
            reinterpret_cast<const Pack<T, kLanes>*>(bias)[pack]};
  }
  template <class AnyColumns>
  __device__ W Finish(W x, const Row& row, const AnyColumns& columns, int lane) const {
    return (x - row.mean) * row.factor * Widen(columns.weight.lane[lane]) +
           Widen(columns.bias.lane[lane]);
  }
  template <class AnyColumns>
  __device__ W FinishKept(W x, const Row& row, const AnyColumns& columns, int lane) const {
    return Finish(x, row, columns, lane);
  }
};

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(layernorm) {
  return {
      {"naive", "One thread for each row, three passes", Naive},
      {"online", "One block for each row, two passes", OnlineVariant<LayerNorm>},
      {"shared", "A row stays in the shared memory of a block, or of a cluster of them: read once",
       SharedVariant<LayerNorm>, rows::kSharedTakes},
      {"streamed", "Rows stream through blocks that keep weight and bias in registers",
       StreamedVariant<LayerNorm>, rows::kStreamedTakes},
      {"registers", "A row stays in the registers of one warp: read once",
       RegistersVariant<LayerNorm>, rows::kRegistersTake}};
}

#endif  // __CUDACC__
