// Softmax over the last dimension: y[i] = exp(x[i] - m) / sum of exp(x[j] - m), m = max of x[j].
// Subtracting m changes nothing in exact arithmetic; without it exp overflows from x = 89 on in
// f32.
//
//   naive    three passes: the maximum, the sum, the quotients
//   online   two passes: when a larger maximum turns up, the sum so far is rescaled
//   simd     online by blocks, in vectors, on every core; few long rows are cut between the cores
//
// On a GPU:
//   naive       one thread for each row, three passes
//   online      one block for each row, two passes
//   shared      a row stays in the shared memory of a block, or of a cluster of them: read once
//   registers   a row stays in the registers of a warp: read once, each exponential taken once

#include "kernels/api/kernel.h"

#ifdef __CUDACC__
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/softmax_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Infinity;
using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;
using softmax::ChooseCluster;
using softmax::InPacks;
using softmax::JoinBlock;
using softmax::kAhead;
using softmax::kMostWarps;
using softmax::kWarp;
using softmax::LaunchRegisters;
using softmax::Partial;
using softmax::PartialOfThread;
using softmax::Quotients;
using softmax::Rows;
using softmax::RowsOf;
using softmax::ThreadsFor;

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

// --- online ---

// One block for each row. The second pass goes backwards: what was read last may still be in the
// cache.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kMostWarps* kWarp) OnlineKernel(const T* x, T* y, Rows rows) {
  using W = Wide<T>;
  const std::int64_t packs = rows.length / kLanes;
  for (std::int64_t r = blockIdx.x; r < rows.count; r += gridDim.x) {
    const auto* from = reinterpret_cast<const Pack<T, kLanes>*>(x + r * rows.length);
    auto* to = reinterpret_cast<Pack<T, kLanes>*>(y + r * rows.length);
    const Partial<W> p = JoinBlock(PartialOfThread<T, kLanes>(from, packs));
    const W factor = 1 / p.sum;
#pragma unroll 4
    for (std::int64_t i = packs - 1 - threadIdx.x; i >= 0; i -= blockDim.x) {
      to[i] = Quotients(from[i], p.largest, factor);
    }
    __syncthreads();
  }
}

template <typename T, int kLanes>
absl::Status LaunchOnline(const Call& call, const Rows& rows) {
  const std::int64_t threads = ThreadsFor(rows.length / kLanes, kAhead);
  return cuda::Launch(call, OnlineKernel<T, kLanes>,
                      {.grid = {cuda::Blocks(rows.count, 1)}, .block = {threads}}, call.In<T>(0),
                      call.Out<T>(0), rows);
}

absl::Status Online(const Call& call) {
  const Rows rows = RowsOf(call);
  if (rows.count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return InPacks<T>(call, rows) ? LaunchOnline<T, Pack<T>::kCount>(call, rows)
                                  : LaunchOnline<T, 1>(call, rows);
  });
}

// --- what reads each row once ---

absl::Status Shared(const Call& call) {
  const Rows rows = RowsOf(call);
  if (rows.count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return InPacks<T>(call, rows) ? ChooseCluster<T, Pack<T>::kCount>(call, rows)
                                  : ChooseCluster<T, 1>(call, rows);
  });
}

absl::Status Registers(const Call& call) {
  const Rows rows = RowsOf(call);
  if (rows.count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) -> absl::Status {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, double>) {
      return absl::InternalError("softmax.registers does not take f64");
    } else {
      return InPacks<T>(call, rows) ? LaunchRegisters<T, Pack<T>::kCount>(call, rows)
                                    : LaunchRegisters<T, 1>(call, rows);
    }
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(softmax) {
  return {
      {"naive", "One thread for each row, three passes", Naive},
      {"online", "One block for each row, two passes", Online},
      {"shared", "A row stays in the shared memory of a block, or of a cluster of them: read once",
       Shared, "when N <= (sm >= 90 ? 786432 : 49152) / sizeof(T)"},
      {"registers", "A row stays in the registers of one warp: read once, exp taken once",
       Registers, "when N <= 1024 && sizeof(T) <= 4"}};
}

#else  // The CPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock {
namespace {

std::int64_t RowLength(const Binding& binding) {
  return binding.Dim("N");
}

std::int64_t RowCount(const Binding& binding) {
  const std::int64_t n = RowLength(binding);
  return n == 0 ? 0 : Elements(binding.inputs[0].tensors[0].shape) / n;
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const std::int64_t n = RowLength(binding), first = unit * n;
  double largest = in(0, first);
  for (std::int64_t i = 1; i < n; ++i) largest = std::fmax(largest, in(0, first + i));
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double e = std::exp(in(0, first + i) - largest);
    result[static_cast<std::size_t>(i)] = e;
    sum += e;
  }
  for (double& r : result) r /= sum;
}

// x - m carries a rounding of its own size into the exponent, so the error grows with |x - m|.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  Expected(binding, in, unit, output, result);
  const std::int64_t n = RowLength(binding), first = unit * n;
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

// The maximum so far, and the sum of exp(x - largest) so far.
template <typename W>
struct Partial {
  W largest = -std::numeric_limits<W>::infinity();
  W sum = 0;
};

// exp(x - largest), where nothing but -inf came so far: then x is -inf, and its part of the sum is
// 0.
template <typename W>
W Term(W x, W largest) {
  return largest == -std::numeric_limits<W>::infinity() && !(x > largest) && x == x
             ? W{0}
             : std::exp(x - largest);
}

template <typename W>
Partial<W> Join(Partial<W> a, Partial<W> b) {
  const W largest = std::max(a.largest, b.largest);
  return {largest, a.sum * Term(a.largest, largest) + b.sum * Term(b.largest, largest)};
}

template <typename T>
void OnlineRow(const T* x, T* y, std::int64_t n) {
  using W = Wide<T>;
  Partial<W> p;
  for (std::int64_t i = 0; i < n; ++i) {
    const W v = Widen(x[i]);
    if (v > p.largest) {
      p.sum *= Term(p.largest, v);
      p.largest = v;
    }
    p.sum += Term(v, p.largest);
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = Narrow<T>(std::exp(Widen(x[i]) - p.largest) / p.sum);
}

// `row` on every row, one after the other.
template <auto kRow, typename T>
void OnEachRow(const Call& call) {
  const std::int64_t n = RowLength(*call.binding);
  for (std::int64_t r = 0; r < RowCount(*call.binding); ++r) {
    kRow(call.In<T>(0) + r * n, call.Out<T>(0) + r * n, n);
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    OnEachRow<&NaiveRow<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Online(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    OnEachRow<&OnlineRow<T>, T>(call);
    return absl::OkStatus();
  });
}

// A block stays in the first cache between its two readings.
constexpr std::int64_t kBlock = 2048;

// NaN may be left out or kept, and either is right: the sum has it again.
template <typename T>
Wide<T> LargestOf(const T* x, std::int64_t n) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr auto kNothing = -std::numeric_limits<Wide<T>>::infinity();
  auto m0 = hn::Set(d, kNothing), m1 = m0;
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(simd::Read<T>(d, x + i), m0);
    m1 = hn::Max(simd::Read<T>(d, x + i + lanes), m1);
  }
  for (; i < n; i += lanes) {
    const auto part = static_cast<std::size_t>(std::min(lanes, n - i));
    m0 = hn::Max(simd::ReadPart<T>(d, x + i, part, Narrow<T>(kNothing)), m0);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

// The partial of up to a block. The terms go to `terms` unless it is null.
template <typename T>
Partial<Wide<T>> BlockPartial(const T* x, std::int64_t n, Wide<T>* terms) {
  namespace hn = simd::hn;
  using W = Wide<T>;
  constexpr W kNothing = -std::numeric_limits<W>::infinity();
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const W top = LargestOf(x, n);
  // With nothing but -inf, any finite number in place of it makes the terms 0.
  const auto shift = hn::Set(d, top == kNothing ? W{0} : top);
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const auto v = i + lanes <= n ? simd::Read<T>(d, x + i)
                                  : simd::ReadPart<T>(d, x + i, static_cast<std::size_t>(n - i),
                                                      Narrow<T>(kNothing));
    simd::PrefetchFrom(x + i);  // The next rows come while this one is computed.
    const auto term = simd::ExpUpToHigh(d, hn::Sub(v, shift));
    sum = hn::Add(sum, term);
    if (terms != nullptr) hn::StoreU(term, d, terms + i);
  }
  return {top, hn::GetLane(hn::SumOfLanes(d, sum))};
}

template <typename T>
void WriteQuotients(const T* x, T* y, std::int64_t begin, std::int64_t end, Partial<Wide<T>> p,
                    bool stream) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto largest = hn::Set(d, p.largest), factor = hn::Set(d, 1 / p.sum);
  const auto quotient = [&](auto, auto v) {
    return hn::Mul(simd::ExpUpToHigh(d, hn::Sub(v, largest)), factor);
  };
  simd::MapRange<T>(quotient, y, begin, end, stream, x);
}

// A row that is one block: its terms are kept, so that each exponential is taken once.
template <typename T>
void ShortRow(const T* x, T* y, std::int64_t n, bool stream) {
  namespace hn = simd::hn;
  using W = Wide<T>;
  const simd::Tag<T> d;
  alignas(64) W terms[kBlock];
  const auto p = BlockPartial(x, n, terms);
  if (p.largest == -std::numeric_limits<W>::infinity())
    return WriteQuotients(x, y, 0, n, p, stream);
  const auto factor = hn::Set(d, 1 / p.sum);
  simd::MapRange<T>([&](auto, auto v) { return hn::Mul(v, factor); }, y, 0, n, stream, terms);
}

// Blocks that are joined before they are joined with others: what one thread takes of a row.
constexpr std::int64_t kPart = 8 * kBlock;

// The partial of up to a part.
template <typename T>
Partial<Wide<T>> PartPartial(const T* x, std::int64_t n) {
  Partial<Wide<T>> p;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    p = Join(p, BlockPartial<T>(x + i, std::min(kBlock, n - i), nullptr));
  }
  return p;
}

// Joins by parts as SplitRow does, so that the result does not depend on the number of threads.
template <typename T>
void SimdRow(const T* x, T* y, std::int64_t n, bool stream) {
  if (n <= kBlock) return ShortRow(x, y, n, stream);
  Partial<Wide<T>> p;
  for (std::int64_t i = 0; i < n; i += kPart) {
    p = Join(p, PartPartial(x + i, std::min(kPart, n - i)));
  }
  WriteQuotients(x, y, 0, n, p, stream);
}

// One row on all threads: each makes the partials of its parts, which are joined in their order.
template <typename T>
void SplitRow(Threads& threads, const T* x, T* y, std::int64_t n, bool stream) {
  std::vector<Partial<Wide<T>>> parts(static_cast<std::size_t>((n + kPart - 1) / kPart));
  threads.ParallelFor(n, kPart, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kPart) {
      parts[static_cast<std::size_t>(i / kPart)] = PartPartial(x + i, std::min(kPart, end - i));
    }
  });
  Partial<Wide<T>> p;
  for (const auto& part : parts) p = Join(p, part);
  threads.ParallelFor(n, kPart, [&](std::int64_t begin, std::int64_t end) {
    WriteQuotients(x, y, begin, end, p, stream);
    if (stream) hwy::FlushStream();
  });
}

template <typename T>
void SimdRows(const Call& call) {
  const std::int64_t n = RowLength(*call.binding), rows = RowCount(*call.binding);
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  constexpr std::int64_t kShort = 256;  // Rows that are mostly edges gain nothing.
  const bool stream = x != y && n >= kShort && simd::WorthStreaming<T>(n * rows);
  if (rows < call.threads->count() && n >= 2 * simd::kGrain) {
    for (std::int64_t r = 0; r < rows; ++r) {
      SplitRow(*call.threads, x + r * n, y + r * n, n, stream);
    }
    return;
  }
  const std::int64_t grain =
      std::max<std::int64_t>(1, simd::kGrain / 4 / std::max<std::int64_t>(n, 1));
  call.threads->ParallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) SimdRow(x + r * n, y + r * n, n, stream);
    if (stream) hwy::FlushStream();
  });
}

absl::Status Simd(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    SimdRows<decltype(element)>(call);
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
      .reference = {.units = RowCount,
                    .unit_elements = RowLength,
                    .compute = Expected,
                    .accumulation = RowLength,
                    .magnitude = Magnitude,
                    .unit_terms = RowLength},
      .cpu = {{"naive", "Three passes over each row, one thread", Naive},
              {"online", "Two passes: the sum is rescaled when a larger maximum turns up", Online},
              {"simd", "Online by blocks, in vectors, on every core", Simd}},
  };
}

#endif  // __CUDACC__
