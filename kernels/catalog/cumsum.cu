// Cumulative sum over one dimension: x is [A, N, B], y[a, k, b] = x[a, 0, b] + ... + x[a, k, b].
// Each element rests on all before it, so it looks as if nothing could run side by side. But sums
// may be grouped: the prefix of a piece is the sum of the pieces before it, plus the prefix within.
// That costs a few more additions and gives as many pieces as one likes; and each element then has
// far fewer roundings behind it than there are elements before it. No sum is ever taken back: where
// an infinity came, x - x would be NaN.
//
//   naive     one term after the other: up to N roundings
//   simd      by blocks, joined in double: prefixes of a vector of a row by adding what stands one
//             lane before, then two, then four; columns beside each other in vectors; on every core
//
// On a GPU; times are of 65536 rows of 1024 f32 on an H200:
//   naive     1.46 ms: one thread for each row or column; of rows, neighbouring threads read and
//             write a row's length apart
//   scan      131 us: a warp or a block for each row: prefixes of 16 bytes in a thread, of threads
//             by shuffles, of warps through shared memory, and what is carried on to the next tile,
//             which is already on its way from memory. Few long rows, and columns, are cut into
//             parts: their sums first (reduce_cuda.cuh), then each part from the sums before it.
//             That reads everything twice, so rows that keep a GPU busy as they are stay whole:
//             1024 rows of 131,072 f32 take 282 us on an H200, and 398 in two parts each

#include "kernels/api/kernel.h"
#include "kernels/catalog/reduce_sizes.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/catalog/cumsum_simd.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/reduce_reference.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

using reduce::Sizes;
using reduce::SizesOf;

// A unit is what lies together: the columns of one matrix.
std::int64_t Matrices(const Binding& binding) {
  const Sizes s = SizesOf(binding);
  return s.n * s.inner == 0 ? 0 : s.outer;
}
std::int64_t MatrixElements(const Binding& binding) {
  const Sizes s = SizesOf(binding);
  return s.n * s.inner;
}

template <typename Term>
void Prefixes(const Binding& binding, std::int64_t unit, std::span<double> result, Term term) {
  const std::int64_t columns = Elements(binding.Run("B")), first = unit * MatrixElements(binding);
  for (std::int64_t b = 0; b < columns; ++b) {
    const Line terms = reduce::TermsOf(binding, unit * columns + b);
    ReferenceSum sum;
    for (std::int64_t k = 0; k < terms.length; ++k) {
      sum += term(terms.at(k));
      result[static_cast<std::size_t>(terms.at(k) - first)] = static_cast<double>(sum);
    }
  }
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  Prefixes(binding, unit, result, [&](std::int64_t element) { return in(0, element); });
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  Prefixes(binding, unit, result, [&](std::int64_t element) { return std::fabs(in(0, element)); });
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
      const std::int64_t first = reduce::FirstTerm(s, i);
      Wide<T> sum = 0;
      for (std::int64_t k = 0; k < s.n; ++k) {
        sum += Widen(call.In<T>(0)[first + k * s.inner]);
        call.Out<T>(0)[first + k * s.inner] = Narrow<T>(sum);
      }
    }
    return absl::OkStatus();
  });
}

namespace hn = simd::hn;
using cumsum::kPart;
using cumsum::Results;
using cumsum::ScanBlocks;
using cumsum::ScanPart;
using cumsum::ScanRow;

// One row on all threads.
template <typename T>
void SplitRow(Threads& threads, const T* x, T* y, std::int64_t n, bool stream) {
  std::vector<double> before(static_cast<std::size_t>((n + kPart - 1) / kPart));
  const auto each_part = [&](auto body) {
    threads.ParallelFor(n, kPart, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kPart) {
        body(i, std::min(kPart, end - i), before[static_cast<std::size_t>(i / kPart)]);
      }
      hwy::FlushStream();
    });
  };
  each_part([&](std::int64_t i, std::int64_t part, double& sum) {
    sum = ScanBlocks<Results::kNone, T>(x + i, nullptr, part, 0);
  });
  double all = 0;
  for (double& sum : before) {
    const double of_part = sum;
    sum = all;
    all += of_part;
  }
  each_part([&](std::int64_t i, std::int64_t part, double start) {
    ScanPart(x + i, y + i, part, start, stream);
  });
}

template <typename T>
void ScanRows(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const bool stream = x != y && simd::WorthStreaming<T>(s.outer * s.n);
  if (s.outer < call.threads->count() && s.n >= 2 * kPart) {
    for (std::int64_t a = 0; a < s.outer; ++a)
      SplitRow(*call.threads, x + a * s.n, y + a * s.n, s.n, stream);
    return;
  }
  const std::int64_t grain = 1 + simd::kGrain / (s.n + 1);
  call.threads->ParallelFor(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t a = begin; a < end; ++a) ScanRow(x + a * s.n, y + a * s.n, s.n, stream);
    if (stream) hwy::FlushStream();
  });
}

constexpr std::int64_t kColumns = 1024;

// Rows whose sums are kept in vectors; what came before them is added last, as in ScanBlock.
constexpr std::int64_t kBlockRows = 512;

// y[k, c] = start[c] + sums[c], where sums[c] += x[k, c] in order; without y the sums alone.
template <typename T>
void AddBlock(const T* x, T* y, std::int64_t rows, std::int64_t stride, std::int64_t width,
              const Wide<T>* start, Wide<T>* sums) {
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = width - width % lanes;
  for (std::int64_t k = 0; k < rows; ++k) {
    const std::int64_t row = k * stride;
    for (std::int64_t c = 0; c < whole; c += lanes) {
      const auto sum = hn::Add(hn::LoadU(d, sums + c), simd::Read<T>(d, x + row + c));
      hn::StoreU(sum, d, sums + c);
      if (y != nullptr) simd::Write<T>(hn::Add(hn::LoadU(d, start + c), sum), d, y + row + c);
    }
    for (std::int64_t c = whole; c < width; ++c) {
      sums[c] += Widen(x[row + c]);
      if (y != nullptr) y[row + c] = Narrow<T>(start[c] + sums[c]);
    }
  }
}

// Up to kColumns columns behind `before`, to which their sums are added.
template <typename T>
void AddColumns(const T* x, T* y, std::int64_t rows, std::int64_t stride, std::int64_t width,
                double* before) {
  for (std::int64_t k = 0; k < rows; k += kBlockRows) {
    Wide<T> start[kColumns], sums[kColumns];
    for (std::int64_t c = 0; c < width; ++c) start[c] = static_cast<Wide<T>>(before[c]);
    std::fill_n(sums, width, Wide<T>{0});
    AddBlock(x + k * stride, y == nullptr ? nullptr : y + k * stride,
             std::min(kBlockRows, rows - k), stride, width, start, sums);
    for (std::int64_t c = 0; c < width; ++c) before[c] += sums[c];
  }
}

// Rows go in parts where there are few columns; by the sizes alone, so that a sum has the same bits
// on any number of threads.
template <typename T>
void ScanColumns(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const std::int64_t tiles = (s.inner + kColumns - 1) / kColumns;
  constexpr std::int64_t kManyTasks = 32, kLeastRows = 1024;
  const std::int64_t wanted = (kManyTasks + s.outer * tiles - 1) / (s.outer * tiles);
  const std::int64_t parts =
      std::clamp<std::int64_t>(std::min(wanted, s.n / kLeastRows), 1, kManyTasks);
  const std::int64_t rows = (s.n + parts - 1) / parts, width = std::min(s.inner, kColumns);
  std::vector<double> sums(
      static_cast<std::size_t>(parts == 1 ? 0 : s.outer * tiles * parts * width));
  // Task t is part t % parts of tile t / parts.
  const auto add = [&](std::int64_t t, bool write, double* before) {
    const std::int64_t tile = t / parts, row = std::min(s.n, t % parts * rows);
    const std::int64_t first = (tile / tiles * s.n + row) * s.inner + tile % tiles * kColumns;
    AddColumns(x + first, write ? y + first : nullptr, std::min(rows, s.n - row), s.inner,
               std::min(kColumns, s.inner - tile % tiles * kColumns), before);
  };
  const std::int64_t grain = 1 + simd::kGrain / (rows * width + 1);
  if (parts > 1) {
    call.threads->ParallelFor(s.outer * tiles * parts, grain,
                              [&](std::int64_t begin, std::int64_t end) {
                                for (std::int64_t t = begin; t < end; ++t) {
                                  add(t, false, sums.data() + t * width);
                                }
                              });
  }
  call.threads->ParallelFor(s.outer * tiles * parts, grain,
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t t = begin; t < end; ++t) {
                                double before[kColumns] = {};
                                for (std::int64_t p = t / parts * parts; p < t; ++p) {
                                  for (std::int64_t c = 0; c < width; ++c) {
                                    before[c] += sums[static_cast<std::size_t>(p * width + c)];
                                  }
                                }
                                add(t, true, before);
                              }
                            });
}

absl::Status Simd(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.n * s.inner == 0) return absl::OkStatus();
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    s.inner == 1 ? ScanRows<T>(call, s) : ScanColumns<T>(call, s);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(cumsum) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: T[*A, N, *B] over x; axis: i64 = -1 in [-8, 7] "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "The sums of all elements up to each, over one dimension",
      .formula = "y[a, k, b] = sum over j <= k of x[a, j, b]",
      .notes =
          "Accumulated in f32 (f64 for f64), and each element rounded once from there; simd and "
          "scan join the sums of blocks in f64. From NaN on all "
          "is NaN, as it is from where infinities of both signs came. Where the magnitudes of the "
          "terms come to more than "
          "3.4e38 (f64: 1.8e308), an element is the sum, an infinity or NaN, as the order has it.",
      .reference = {.units = Matrices,
                    .unit_elements = MatrixElements,
                    .compute = Expected,
                    .accumulation = reduce::Terms,
                    .magnitude = Magnitude,
                    .reach = reduce::MostOfColumns,
                    .unit_terms = MatrixElements},
      .cpu = {{"naive", "One term after the other, one thread", Naive},
              {"simd", "By blocks and by columns, in vectors, on every core", Simd}},
  };
}

#else  // The GPU.
#include <algorithm>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/reduce_cuda.cuh"
#include "kernels/catalog/rows_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;
using reduce::Parts;
using reduce::Sizes;
using reduce::SizesOf;
using reduce::SumOp;
using rows::kWarp;

template <typename T>
using State = typename SumOp<T>::State;

// --- naive ---

template <typename T>
__global__ void NaiveKernel(const T* x, T* y, Sizes s) {
  for (std::int64_t i = cuda::GridThread(); i < s.outer * s.inner; i += cuda::GridThreads()) {
    const std::int64_t first = i / s.inner * s.n * s.inner + i % s.inner;
    Wide<T> sum = 0;
    for (std::int64_t k = 0; k < s.n; ++k) {
      sum += Widen(x[first + k * s.inner]);
      y[first + k * s.inner] = Narrow<T>(sum);
    }
  }
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.n * s.inner == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    constexpr std::int64_t kThreads = 128;
    return cuda::Launch(call, NaiveKernel<T>,
                        {.grid = {cuda::Blocks(s.outer * s.inner, kThreads)}, .block = {kThreads}},
                        call.In<T>(0), call.Out<T>(0), s);
  });
}

// --- scan: rows ---

// Of the threads of a warp before this one.
template <typename W>
__device__ W SumBefore(W v) {
  const int thread = static_cast<int>(threadIdx.x) % kWarp;
  for (int step = 1; step < kWarp; step *= 2) {
    const W before = __shfl_up_sync(~0U, v, step);
    if (thread >= step) v += before;
  }
  v = __shfl_up_sync(~0U, v, 1);
  return thread == 0 ? W{0} : v;
}

// What a warp has of a tile: kPacks times 32 packs that lie beside each other.
template <typename T, int kLanes, int kPacks>
struct Segment {
  using W = Wide<T>;
  static constexpr int kElements = kPacks * kWarp * kLanes;

  // From `first` on, as far as `end`; both whole packs.
  __device__ void Load(const T* x, std::int64_t first, std::int64_t end) {
    const int thread = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const std::int64_t at = first + (p * kWarp + thread) * kLanes;
      packs[p] = {};
      if (at < end) packs[p] = *reinterpret_cast<const Pack<T, kLanes>*>(x + at);
    }
  }

  // Prefixes within the segment; its sum, the same on all threads.
  __device__ W Scan() {
    W sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      W last = 0;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        last += Widen(packs[p].lane[lane]);
        prefix[p][lane] = last;
      }
      const W before = SumBefore(last);
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) prefix[p][lane] += sum + before;
      sum = __shfl_sync(~0U, prefix[p][kLanes - 1], kWarp - 1);
    }
    return sum;
  }

  __device__ void Store(T* y, std::int64_t first, std::int64_t end, W before) const {
    const int thread = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const std::int64_t at = first + (p * kWarp + thread) * kLanes;
      Pack<T, kLanes> out;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        out.lane[lane] = Narrow<T>(before + prefix[p][lane]);
      }
      if (at < end) *reinterpret_cast<Pack<T, kLanes>*>(y + at) = out;
    }
  }

  Pack<T, kLanes> packs[kPacks];
  W prefix[kPacks][kLanes];
};

constexpr int kRowsOfBlock = 4;

// One warp for each row.
template <typename T, int kLanes, int kPacks>
__global__ void __launch_bounds__(kRowsOfBlock* kWarp)
    WarpsKernel(const T* x, T* y, std::int64_t rows, std::int64_t n) {
  const std::int64_t step = std::int64_t{gridDim.x} * kRowsOfBlock;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kWarp; r < rows;
       r += step) {
    Segment<T, kLanes, kPacks> segment;
    segment.Load(x + r * n, 0, n);
    segment.Scan();
    segment.Store(y + r * n, 0, n, 0);
  }
}

constexpr int kWarps = 8;

// One block for each part of a row. `sums` are those of all parts; null where a row is one part.
template <typename T, int kLanes, int kPacks>
__global__ void __launch_bounds__(kWarps* kWarp)
    BlocksKernel(const T* x, T* y, const State<T>* sums, std::int64_t rows, std::int64_t n,
                 Parts parts) {
  using W = Wide<T>;
  using WarpSegment = Segment<T, kLanes, kPacks>;
  __shared__ W of_warp[2][kWarps];  // Of this tile and of the next: one meeting for each is enough.
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  int turn = 0;
  for (std::int64_t task = blockIdx.x; task < rows * parts.count; task += gridDim.x) {
    const std::int64_t row = task / parts.count, part = task % parts.count;
    const std::int64_t end = min(n, (part + 1) * parts.terms);
    const T* from = x + row * n;
    double carried = 0;
    for (std::int64_t p = threadIdx.x % kWarp; p < part; p += kWarp) {
      carried += sums[row * parts.count + p].sum;
    }
    carried = rows::SumOfWarp(carried);
    WarpSegment segment;
    std::int64_t first = part * parts.terms + warp * WarpSegment::kElements;
    segment.Load(from, first, end);
    for (std::int64_t tile = part * parts.terms; tile < end;
         tile += kWarps * WarpSegment::kElements) {
      const W sum = segment.Scan();
      if (threadIdx.x % kWarp == 0) of_warp[turn][warp] = sum;
      const std::int64_t next = first + kWarps * WarpSegment::kElements;
      segment.Load(from, next, end);
      __syncthreads();
      W within = 0, of_tile = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) within = of_tile;
        of_tile += of_warp[turn][w];
      }
      segment.Store(y + row * n, first, end, static_cast<W>(carried + within));
      carried += of_tile;
      first = next;
      turn = 1 - turn;
    }
  }
}

template <int kLanes, int kPacks = 1, typename T>
absl::Status LaunchWarps(const Call& call, const T* x, T* y, const Sizes& s) {
  if constexpr (kPacks * kLanes * kWarp < rows::kMostInRegisters) {
    if (s.n > kPacks * kLanes * kWarp) return LaunchWarps<kLanes, 2 * kPacks>(call, x, y, s);
  }
  return cuda::Launch(
      call, WarpsKernel<T, kLanes, kPacks>,
      {.grid = {cuda::Blocks(s.outer, kRowsOfBlock)}, .block = {kRowsOfBlock * kWarp}}, x, y,
      s.outer, s.n);
}

// Parts begin where packs do.
Parts PartsOfScan(const Sizes& s) {
  constexpr std::int64_t kWhole = 1024, kEnoughRows = 512;
  if (s.outer >= kEnoughRows) return {1, s.n};
  Parts parts = reduce::PartsOfRows(s);
  parts.terms = (parts.terms + kWhole - 1) / kWhole * kWhole;
  parts.count = (s.n + parts.terms - 1) / parts.terms;
  return parts;
}

template <int kLanes, typename T>
absl::Status ScanRows(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  if (s.n <= rows::kMostInRegisters) return LaunchWarps<kLanes>(call, x, y, s);
  const Parts parts = PartsOfScan(s);
  auto* sums = static_cast<State<T>*>(call.scratch[0].data[0]);
  if (parts.count > 1) {
    GC_RETURN_IF_ERROR(reduce::LaunchRows(call, SumOp<T>(), x, sums, s.outer, s.n, parts));
  }
  constexpr int kPacks = 16 / kLanes < 4 ? 4 : 16 / kLanes;
  return cuda::Launch(call, BlocksKernel<T, kLanes, kPacks>,
                      {.grid = {cuda::Blocks(s.outer * parts.count, 1)}, .block = {kWarps * kWarp}},
                      x, y, sums, s.outer, s.n, parts);
}

// --- scan: columns ---

// Rows whose terms a thread adds to each other before they join what came before them.
constexpr int kBlockRows = 64;

// Up to kRows terms from x on, a row's length apart, of which `rows` are there, and their prefixes
// behind `before`; returns the sum of all.
template <int kRows, typename T>
__device__ Wide<T> ScanBlock(const T* x, T* y, std::int64_t rows, std::int64_t stride,
                             Wide<T> before) {
  constexpr int kAhead = 8;  // Elements that a thread asks for before it adds them.
  Wide<T> sum = 0;
  for (int k = 0; k < kRows && k < rows; k += kAhead) {
    T in[kAhead];
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      if (k + e < rows) in[e] = x[(k + e) * stride];
    }
#pragma unroll
    for (int e = 0; e < kAhead; ++e) {
      if (k + e >= rows) break;
      sum += Widen(in[e]);
      y[(k + e) * stride] = Narrow<T>(before + sum);
    }
  }
  return sum;
}

// One thread for each part of a column.
template <typename T>
__global__ void __launch_bounds__(reduce::kThreads)
    ColumnsKernel(const T* x, T* y, const State<T>* sums, Sizes s, Parts parts) {
  const std::int64_t tasks = s.outer * parts.count * s.inner;
  for (std::int64_t i = cuda::GridThread(); i < tasks; i += cuda::GridThreads()) {
    const std::int64_t b = i % s.inner, part = i / s.inner % parts.count;
    const std::int64_t a = i / s.inner / parts.count;
    const std::int64_t first = a * s.n * s.inner + b, end = min(s.n, (part + 1) * parts.terms);
    double before = 0;
    for (std::int64_t p = 0; p < part; ++p) {
      before += sums[(a * parts.count + p) * s.inner + b].sum;
    }
    for (std::int64_t k = part * parts.terms; k < end; k += kBlockRows) {
      const std::int64_t at = first + k * s.inner;
      before +=
          ScanBlock<kBlockRows>(x + at, y + at, end - k, s.inner, static_cast<Wide<T>>(before));
    }
  }
}

Parts PartsOfColumnScan(const Sizes& s) {
  constexpr std::int64_t kThreads = reduce::kThreads, kLeastRows = 32;  // Of a thread.
  const std::int64_t tasks = s.outer * ((s.inner + kThreads - 1) / kThreads);
  return reduce::PartsOf(s.n, tasks, kLeastRows * (kThreads / std::min(s.inner, kThreads)));
}

template <typename T>
absl::Status ScanColumns(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  const Parts parts = PartsOfColumnScan(s);
  auto* sums = static_cast<State<T>*>(call.scratch[0].data[0]);
  if (parts.count > 1) {
    GC_RETURN_IF_ERROR(reduce::LaunchColumns(call, SumOp<T>(), x, sums, s, parts));
  }
  const std::int64_t blocks = cuda::Blocks(s.outer * parts.count * s.inner, reduce::kThreads);
  return cuda::Launch(call, ColumnsKernel<T>, {.grid = {blocks}, .block = {reduce::kThreads}}, x,
                      call.Out<T>(0), sums, s, parts);
}

absl::Status Scan(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.n * s.inner == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    if (s.inner > 1) return ScanColumns<T>(call, s);
    constexpr int kLanes = Pack<T>::kCount;
    const bool in_packs = s.n % kLanes == 0 && cuda::AreAligned(call.In<T>(0), call.Out<T>(0));
    return in_packs ? ScanRows<kLanes, T>(call, s) : ScanRows<1, T>(call, s);
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(cumsum) {
  return {{"naive", "One thread for each row or column, one term after the other", Naive},
          {"scan", "Prefixes of threads, warps and blocks; parts of what is long start at once",
           Scan, reduce::kScratchOfValues}};
}

#endif  // __CUDACC__
