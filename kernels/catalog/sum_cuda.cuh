// Sums on a GPU: rows by warps or blocks, columns by blocks, either cut into parts.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SUM_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_SUM_CUDA_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/sum_sizes.h"

namespace gridclock::sum {

using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;

constexpr int kWarp = 32;
constexpr int kThreads = 256;

// As many blocks as fill any GPU twice; not by the device's own number, so that a sum has the same
// bits on all of them. No more than twice as many are made, as the words' scratch promises.
constexpr std::int64_t kEnoughBlocks = 2048;

// Into how many parts n terms are cut where there are `tasks` sums, and the terms of each part.
struct Parts {
  std::int64_t count = 1, terms = 0;
};

inline Parts PartsOf(std::int64_t n, std::int64_t tasks, std::int64_t least_terms) {
  const std::int64_t wanted = (kEnoughBlocks + tasks - 1) / tasks;
  const std::int64_t most = std::max<std::int64_t>(1, n / least_terms);
  const std::int64_t count = std::min(wanted, most);
  const std::int64_t terms = (n + count - 1) / count;
  return {(n + terms - 1) / terms, terms};
}

// The sum of all of a group of kGroup threads, on its first thread. All threads must come here, and
// must be together again before they come anew.
template <int kGroup, typename W>
__device__ W SumOfGroup(W sum) {
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_down_sync(~0U, sum, step);
  if constexpr (kGroup == kThreads) {
    __shared__ W of_warp[kThreads / kWarp];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
    __syncthreads();
    sum = 0;
    for (const W& one : of_warp) sum += one;
  }
  return sum;
}

// What thread `rank` of kGroup sums of terms beside each other: 16 bytes at a time, but where they
// begin and end askew.
template <int kGroup, typename In>
__device__ Wide<In> SumOfThread(const In* p, std::int64_t n, int rank) {
  using W = Wide<In>;
  constexpr int kLanes = Pack<In>::kCount, kAhead = 4;
  const auto askew = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(In));
  const std::int64_t head = min(n, (kLanes - askew % kLanes) % kLanes);
  const auto* packs = reinterpret_cast<const Pack<In>*>(p + head);
  const std::int64_t count = (n - head) / kLanes;
  W sums[kLanes] = {};
#pragma unroll 1
  for (std::int64_t i = rank; i < count; i += kAhead * kGroup) {
    Pack<In> in[kAhead];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      in[a] = {};
      if (i + a * kGroup < count) in[a] = packs[i + a * kGroup];
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) sums[lane] += Widen(in[a].lane[lane]);
    }
  }
  if (rank < head) sums[0] += Widen(p[rank]);
  const std::int64_t rest = head + count * kLanes + rank;
  if (rest < n) sums[1] += Widen(p[rest]);
  W sum = 0;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

// y[r * parts + part]: the sum of a part of row r, by kGroup threads each.
template <int kGroup, typename Out, typename In>
__global__ void __launch_bounds__(kThreads)
    RowsKernel(const In* x, Out* y, std::int64_t rows, std::int64_t n, Parts parts) {
  constexpr int kGroups = kThreads / kGroup;
  const int rank = static_cast<int>(threadIdx.x) % kGroup;
  for (std::int64_t task = std::int64_t{blockIdx.x} * kGroups + threadIdx.x / kGroup;
       task < rows * parts.count; task += std::int64_t{gridDim.x} * kGroups) {
    const std::int64_t row = task / parts.count, first = task % parts.count * parts.terms;
    const Wide<In> sum = SumOfGroup<kGroup>(
        SumOfThread<kGroup>(x + row * n + first, min(parts.terms, n - first), rank));
    if (rank == 0) y[task] = Narrow<Out>(sum);
    if constexpr (kGroup == kThreads) __syncthreads();
  }
}

constexpr std::int64_t kShortRow = 2048;

// One launch: y[r * parts + part] of all rows.
template <typename Out, typename In>
absl::Status LaunchRows(const Call& call, const In* x, Out* y, std::int64_t rows, std::int64_t n,
                        const Parts& parts) {
  const auto kernel = n <= kShortRow ? RowsKernel<kWarp, Out, In> : RowsKernel<kThreads, Out, In>;
  const std::int64_t groups = n <= kShortRow ? kThreads / kWarp : 1;
  return cuda::Launch(call, kernel,
                      {.grid = {cuda::Blocks(rows * parts.count, groups)}, .block = {kThreads}}, x,
                      y, rows, n, parts);
}

// How threads lie over the columns of a block: `columns` beside each other, in `rows` rows.
struct Tile {
  std::int64_t columns, rows, count;
  explicit Tile(std::int64_t inner)
      : columns(std::min<std::int64_t>(inner, kThreads)),
        rows(kThreads / columns),
        count((inner + columns - 1) / columns) {}
};

// y[(a * parts + part) * inner + b]: the sum of a part of column b of matrix a.
template <typename Out, typename In>
__global__ void __launch_bounds__(kThreads)
    ColumnsKernel(const In* x, Out* y, Sizes s, Parts parts, Tile tile) {
  using W = Wide<In>;
  __shared__ W sums[kThreads];
  const std::int64_t thread = threadIdx.x;
  const std::int64_t row = thread / tile.columns;
  for (std::int64_t task = blockIdx.x; task < s.outer * parts.count * tile.count;
       task += gridDim.x) {
    const std::int64_t b = task % tile.count * tile.columns + thread % tile.columns;
    const std::int64_t part = task / tile.count;  // Of all matrices.
    const std::int64_t first = part % parts.count * parts.terms;
    const std::int64_t end = min(s.n, first + parts.terms);
    W sum = 0;
    if (row < tile.rows && b < s.inner) {
      const In* p = x + part / parts.count * s.n * s.inner + b;
#pragma unroll 8
      for (std::int64_t k = first + row; k < end; k += tile.rows) sum += Widen(p[k * s.inner]);
    }
    sums[thread] = sum;
    for (std::int64_t rows = tile.rows; rows > 1; rows = (rows + 1) / 2) {
      __syncthreads();
      const std::int64_t half = (rows + 1) / 2;
      if (row + half < rows) sums[thread] += sums[thread + half * tile.columns];
    }
    if (row == 0 && b < s.inner) y[part * s.inner + b] = Narrow<Out>(sums[thread]);
    __syncthreads();
  }
}

template <typename Out, typename In>
absl::Status LaunchColumns(const Call& call, const In* x, Out* y, const Sizes& s,
                           const Parts& parts) {
  const Tile tile(s.inner);
  return cuda::Launch(
      call, ColumnsKernel<Out, In>,
      {.grid = {cuda::Blocks(s.outer * parts.count * tile.count, 1)}, .block = {kThreads}}, x, y, s,
      parts, tile);
}

}  // namespace gridclock::sum

#endif  // GRIDCLOCK_KERNELS_CATALOG_SUM_CUDA_CUH_
