// Reductions over one dimension on a GPU (sum, mean, max, argmax): rows by warps or blocks, columns
// by blocks, either cut into parts.
//
// What a kernel makes of its terms is its Op:
//
//   Element, Result       what the input and the output hold
//   State                 what is known of some terms; without initialisers, as shared memory has
//                         none
//   kStates               how many states a thread carries for terms beside each other, at most:
//                         many shorten the chain of additions, but large ones want the registers
//   Nothing()             the state of no terms
//   Add(state, x, place)  the term x too, which stands at `place` along the dimension, behind all
//                         others of the state
//   Join(a, b)            the state of both, of which neither need come first
//   Finish(state)         the output
#ifndef GRIDCLOCK_KERNELS_CATALOG_REDUCE_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_REDUCE_CUDA_CUH_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/reduce_sizes.h"
#include "kernels/catalog/rows_cuda.cuh"

namespace gridclock::reduce {

using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;

constexpr int kWarp = 32;
constexpr int kThreads = 256;

// As many blocks as fill any GPU; not by the device's own number, so that a sum has the same bits
// on all of them. No more than twice as many are made, as the words' scratch promises.
constexpr std::int64_t kEnoughBlocks = 2048;

// Into how many parts n terms are cut where there are `tasks` reductions, and the terms of each
// part.
struct Parts {
  std::int64_t count = 1, terms = 0;
};

inline Parts PartsOf(std::int64_t n, std::int64_t tasks, std::int64_t least_terms,
                     std::int64_t blocks = kEnoughBlocks) {
  const std::int64_t wanted = (blocks + tasks - 1) / tasks;
  const std::int64_t most = std::max<std::int64_t>(1, n / least_terms);
  const std::int64_t count = std::min(wanted, most);
  const std::int64_t terms = (n + count - 1) / count;
  return {(n + terms - 1) / terms, terms};
}

// A term is an element, or in the second pass the state of a part.
template <class Op, typename In>
__device__ typename Op::State With(const typename Op::State& s, const In& x, std::int64_t place) {
  if constexpr (std::is_same_v<In, typename Op::State>) {
    return Op::Join(s, x);
  } else {
    return Op::Add(s, x, place);
  }
}

template <typename Out, class Op>
__device__ Out ResultOf(const Op& op, const typename Op::State& s) {
  if constexpr (std::is_same_v<Out, typename Op::State>) {
    return s;
  } else {
    return op.Finish(s);
  }
}

// --- naive ---

template <class Op>
__global__ void NaiveKernel(Op op, const typename Op::Element* x, typename Op::Result* y, Sizes s) {
  const std::int64_t outputs = s.outer * s.inner;
  for (std::int64_t i = cuda::GridThread(); i < outputs; i += cuda::GridThreads()) {
    const typename Op::Element* p = x + i / s.inner * s.n * s.inner + i % s.inner;
    typename Op::State state = Op::Nothing();
    for (std::int64_t k = 0; k < s.n; ++k) state = Op::Add(state, p[k * s.inner], k);
    y[i] = op.Finish(state);
  }
}

template <class Op>
absl::Status Naive(const Call& call, const Sizes& s, const Op& op) {
  return cuda::Launch(call, NaiveKernel<Op>,
                      {.grid = {cuda::Blocks(s.outer * s.inner, kThreads)}, .block = {kThreads}},
                      op, call.In<typename Op::Element>(0), call.Out<typename Op::Result>(0), s);
}

// --- rows ---

// Of a block of groups of kGroup threads: several warps are a block of their own.
template <int kGroup>
inline constexpr int kBlock = kGroup == kWarp ? kThreads : kGroup;

// The state of all of a group of kGroup threads, on its first thread. All threads must come here,
// and must be together again before they come anew.
template <int kGroup, class Op>
__device__ typename Op::State JoinGroup(typename Op::State s) {
  for (int step = kWarp / 2; step > 0; step /= 2) s = Op::Join(s, rows::ShuffleDown(s, step));
  if constexpr (kGroup > kWarp) {
    constexpr int kWarps = kGroup / kWarp;
    __shared__ typename Op::State of_warp[kWarps];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = s;
    __syncthreads();
    if (threadIdx.x >= kWarp) return s;
    s = threadIdx.x < kWarps ? of_warp[threadIdx.x] : Op::Nothing();
    for (int step = kWarps / 2; step > 0; step /= 2) s = Op::Join(s, rows::ShuffleDown(s, step));
  }
  return s;
}

// What thread `rank` of kGroup makes of terms beside each other, the first of which stands at
// `place`: 16 bytes at a time, but where they begin and end askew.
template <int kGroup, class Op, typename In>
__device__ typename Op::State StateOfThread(const In* p, std::int64_t n, std::int64_t place,
                                            int rank) {
  constexpr int kLanes = Pack<In>::kCount, kAhead = 4;
  constexpr int kStates = kLanes < Op::kStates ? kLanes : Op::kStates;
  const auto askew = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(In));
  const std::int64_t head = min(n, (kLanes - askew % kLanes) % kLanes);
  const auto* packs = reinterpret_cast<const Pack<In>*>(p + head);
  const std::int64_t count = (n - head) / kLanes;
  typename Op::State states[kStates];
#pragma unroll
  for (auto& state : states) state = Op::Nothing();
#pragma unroll 1
  for (std::int64_t i = rank; i < count; i += kAhead * kGroup) {
    Pack<In> in[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      if (i + a * kGroup < count) in[a] = packs[i + a * kGroup];
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const std::int64_t at = i + a * kGroup;
      if (at >= count) break;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        auto& state = states[lane % kStates];
        state = With<Op>(state, in[a].lane[lane], place + head + at * kLanes + lane);
      }
    }
  }
  typename Op::State all = Op::Nothing();
  if (rank < head) all = With<Op>(all, p[rank], place + rank);
  const std::int64_t rest = head + count * kLanes + rank;
  if (rest < n) all = With<Op>(all, p[rest], place + rest);
#pragma unroll
  for (const auto& state : states) all = Op::Join(all, state);
  return all;
}

// y[r * parts + part]: that of a part of row r, by kGroup threads each.
template <int kGroup, typename Out, class Op, typename In>
__global__ void __launch_bounds__(kBlock<kGroup>)
    RowsKernel(Op op, const In* x, Out* y, std::int64_t rows, std::int64_t n, Parts parts) {
  constexpr int kGroups = kBlock<kGroup> / kGroup;
  const int rank = static_cast<int>(threadIdx.x) % kGroup;
  for (std::int64_t task = std::int64_t{blockIdx.x} * kGroups + threadIdx.x / kGroup;
       task < rows * parts.count; task += std::int64_t{gridDim.x} * kGroups) {
    const std::int64_t row = task / parts.count, first = task % parts.count * parts.terms;
    const typename Op::State s = JoinGroup<kGroup, Op>(
        StateOfThread<kGroup, Op>(x + row * n + first, min(parts.terms, n - first), first, rank));
    if (rank == 0) y[task] = ResultOf<Out>(op, s);
    if constexpr (kGroup > kWarp) __syncthreads();
  }
}

template <int kGroup, typename Out, class Op, typename In>
absl::Status LaunchRowsBy(const Call& call, const Op& op, const In* x, Out* y, std::int64_t rows,
                          std::int64_t n, const Parts& parts) {
  constexpr std::int64_t kGroups = kBlock<kGroup> / kGroup;
  return cuda::Launch(
      call, RowsKernel<kGroup, Out, Op, In>,
      {.grid = {cuda::Blocks(rows * parts.count, kGroups)}, .block = {kBlock<kGroup>}}, op, x, y,
      rows, n, parts);
}

// Rows that nearly fill a GPU are not cut, so that there is no second launch, but have twice the
// threads, so that the last ones of all do not wait for each other (H200, 1024 rows of 131,072 f32:
// 119 us; cut in two 124, by 256 threads 131; of 8192 rows of 8192 it is the other way round).
constexpr std::int64_t kShortRow = 2048, kLeastTerms = 16384;

// Many states of one row are few rows' alone, so that no other work hides how long a warp waits.
constexpr std::int64_t kShortStates = 256;

inline bool IsWhole(std::int64_t rows) {
  return rows >= kEnoughBlocks / 2;
}

template <typename Out, class Op, typename In>
absl::Status LaunchRows(const Call& call, const Op& op, const In* x, Out* y, std::int64_t rows,
                        std::int64_t n, const Parts& parts) {
  constexpr bool kSecond = std::is_same_v<In, typename Op::State>;
  if (n <= (kSecond ? kShortStates : kShortRow)) {
    return LaunchRowsBy<kWarp>(call, op, x, y, rows, n, parts);
  }
  if (IsWhole(rows) && rows < kEnoughBlocks && n >= 2 * kLeastTerms) {
    return LaunchRowsBy<2 * kThreads>(call, op, x, y, rows, n, parts);
  }
  return LaunchRowsBy<kThreads>(call, op, x, y, rows, n, parts);
}

inline Parts PartsOfRows(const Sizes& s) {
  return IsWhole(s.outer) ? Parts{1, s.n} : PartsOf(s.n, s.outer, kLeastTerms);
}

template <class Op>
absl::Status ReduceRows(const Call& call, const Sizes& s, const Op& op) {
  const auto* x = call.In<typename Op::Element>(0);
  auto* y = call.Out<typename Op::Result>(0);
  const Parts parts = PartsOfRows(s);
  if (parts.count == 1) return LaunchRows(call, op, x, y, s.outer, s.n, parts);
  auto* states = static_cast<typename Op::State*>(call.scratch[0].data[0]);
  GC_RETURN_IF_ERROR(LaunchRows(call, op, x, states, s.outer, s.n, parts));
  return LaunchRows(call, op, states, y, s.outer, parts.count, {1, parts.count});
}

// --- columns ---

// How threads lie over the columns of a block: `columns` packs beside each other, in `rows` rows.
struct Tile {
  std::int64_t columns, rows, count;
  Tile(std::int64_t packs, std::int64_t most)
      : columns(std::min({packs, most, std::int64_t{kThreads}})),
        rows(kThreads / columns),
        count((packs + columns - 1) / columns) {}
};

// y[(a * parts + part) * inner + b]: that of a part of column b of matrix a.
template <int kLanes, typename Out, class Op, typename In>
__global__ void __launch_bounds__(kThreads)
    ColumnsKernel(Op op, const In* x, Out* y, Sizes s, Parts parts, Tile tile) {
  constexpr int kAhead = kLanes == 1 ? 8 : 4;  // Rows that a thread asks for before it waits.
  __shared__ typename Op::State states[kLanes][kThreads];
  const std::int64_t thread = threadIdx.x;
  const std::int64_t row = thread / tile.columns, column = thread - row * tile.columns;
  for (std::int64_t task = blockIdx.x; task < s.outer * parts.count * tile.count;
       task += gridDim.x) {
    const std::int64_t b = (task % tile.count * tile.columns + column) * kLanes;
    const std::int64_t part = task / tile.count;  // Of all matrices.
    const std::int64_t first = part % parts.count * parts.terms;
    const std::int64_t end = min(s.n, first + parts.terms);
    typename Op::State state[kLanes];
#pragma unroll
    for (auto& of_lane : state) of_lane = Op::Nothing();
    if (row < tile.rows && b < s.inner) {
      const In* p = x + part / parts.count * s.n * s.inner + b;
#pragma unroll kAhead
      for (std::int64_t k = first + row; k < end; k += tile.rows) {
        const auto in = *reinterpret_cast<const Pack<In, kLanes>*>(p + k * s.inner);
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          state[lane] = With<Op>(state[lane], in.lane[lane], k);
        }
      }
    }
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) states[lane][thread] = state[lane];
    for (std::int64_t rows = tile.rows; rows > 1; rows = (rows + 1) / 2) {
      __syncthreads();
      const std::int64_t half = (rows + 1) / 2;
      if (row + half >= rows) continue;
#pragma unroll
      for (auto& of_lane : states) {
        of_lane[thread] = Op::Join(of_lane[thread], of_lane[thread + half * tile.columns]);
      }
    }
    if (row == 0 && b < s.inner) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        y[part * s.inner + b + lane] = ResultOf<Out>(op, states[lane][thread]);
      }
    }
    __syncthreads();
  }
}

// Of a row of a tile. States are few, and want all blocks that they can have: with 256 columns, 4
// bytes each, in both passes the sums of 65536 x 1024 f32 took 95 us on an H200, and take 69.
constexpr std::int64_t kTileBytes = 512, kStatesTileBytes = 128;

template <int kLanes, typename Out, class Op, typename In>
absl::Status LaunchColumnsOf(const Call& call, const Op& op, const In* x, Out* y, const Sizes& s,
                             const Parts& parts) {
  constexpr bool kSecond = std::is_same_v<In, typename Op::State>;
  constexpr std::int64_t kBytes = kSecond ? kStatesTileBytes : kTileBytes;
  const Tile tile(s.inner / kLanes, kBytes / std::int64_t{sizeof(Pack<In, kLanes>)});
  return cuda::Launch(
      call, ColumnsKernel<kLanes, Out, Op, In>,
      {.grid = {cuda::Blocks(s.outer * parts.count * tile.count, 1)}, .block = {kThreads}}, op, x,
      y, s, parts, tile);
}

template <typename Out, class Op, typename In>
absl::Status LaunchColumns(const Call& call, const Op& op, const In* x, Out* y, const Sizes& s,
                           const Parts& parts) {
  constexpr int kLanes = Pack<In>::kCount;
  return cuda::AreAligned(x) && s.inner % kLanes == 0
             ? LaunchColumnsOf<kLanes>(call, op, x, y, s, parts)
             : LaunchColumnsOf<1>(call, op, x, y, s, parts);
}

// Half as many blocks as rows get: each writes states for all of its columns.
inline Parts PartsOfColumns(const Sizes& s, std::int64_t element_bytes) {
  const Tile tile(s.inner, kTileBytes / element_bytes);
  constexpr std::int64_t kLeastRows = 64;  // Of a thread that adds one by one.
  return PartsOf(s.n, s.outer * tile.count, kLeastRows * tile.rows, kEnoughBlocks / 2);
}

template <class Op>
absl::Status ReduceColumns(const Call& call, const Sizes& s, const Op& op) {
  const auto* x = call.In<typename Op::Element>(0);
  auto* y = call.Out<typename Op::Result>(0);
  const Parts parts = PartsOfColumns(s, sizeof(typename Op::Element));
  if (parts.count == 1) return LaunchColumns(call, op, x, y, s, parts);
  auto* states = static_cast<typename Op::State*>(call.scratch[0].data[0]);
  GC_RETURN_IF_ERROR(LaunchColumns(call, op, x, states, s, parts));
  const Sizes rest{s.outer, parts.count, s.inner};
  return LaunchColumns(call, op, states, y, rest, {1, parts.count});
}

// --- the variants ---

// Parts by blocks, then their states; where the terms are few, one thread for each output, as most
// of a group would be idle.
template <class Op>
absl::Status TwoPass(const Call& call, const Sizes& s, const Op& op) {
  const std::int64_t few_terms = s.inner == 1 ? 8 : 32;
  if (s.n <= few_terms) return Naive(call, s, op);
  return s.inner == 1 ? ReduceRows(call, s, op) : ReduceColumns(call, s, op);
}

// The Op of a kernel is made for the dtype and the sizes of the call.
template <template <typename> class Op>
absl::Status NaiveVariant(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.inner == 0) return absl::OkStatus();
  return cuda::WithFloat(
      call.InType(0), [&](auto element) { return Naive(call, s, Op<decltype(element)>::Make(s)); });
}

template <template <typename> class Op>
absl::Status TwoPassVariant(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.inner == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    return TwoPass(call, s, Op<decltype(element)>::Make(s));
  });
}

// The sum of terms, which sum and mean share; divided by `divisor`.
template <typename T>
struct SumOp {
  using Element = T;
  using Result = T;
  using W = Wide<T>;
  struct State {
    W sum;
  };
  static constexpr int kStates = 8;
  W divisor = 1;

  static SumOp Make(const Sizes&) { return {}; }

  static __device__ State Nothing() { return {0}; }
  static __device__ State Add(const State& s, T x, std::int64_t) { return {s.sum + Widen(x)}; }
  static __device__ State Join(const State& a, const State& b) { return {a.sum + b.sum}; }
  __device__ T Finish(const State& s) const { return Narrow<T>(s.sum / divisor); }
};

// What the words of TwoPass say of its scratch where a State has at most 8 bytes, or 16.
inline constexpr const char* kScratchOfValues =
    "scratch states: u8[min(numel(x), numel(B) == 1 ? 4096 : 1048576) * max(sizeof(T), 4)]";
inline constexpr const char* kScratchOfPlaces =
    "scratch states: u8[min(numel(x), numel(B) == 1 ? 4096 : 1048576) * 16]";

}  // namespace gridclock::reduce

#endif  // GRIDCLOCK_KERNELS_CATALOG_REDUCE_CUDA_CUH_
