// Softmax on a GPU: what threads, warps, blocks and clusters of blocks know of a row together, and
// the two kernels that read each row once.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_

#include <algorithm>
#include <cstdint>

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock::softmax {

using cuda::Infinity;
using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;

constexpr int kWarp = 32;

struct Rows {
  std::int64_t count = 0, length = 0;
};

inline Rows RowsOf(const Call& call) {
  const std::int64_t n = call.binding->Dim("N");
  return {n == 0 ? 0 : Elements(call.InShape(0)) / n, n};
}

// Whether all rows can be read 16 bytes at a time.
template <typename T>
bool InPacks(const Call& call, const Rows& rows) {
  return rows.length % Pack<T>::kCount == 0 && cuda::AreAligned(call.In<T>(0), call.Out<T>(0));
}

// exp(x - largest). In f32 the difference comes first and is then scaled for the hardware's power
// of two: scaled numbers could overflow, and would carry their rounding into the exponent.
__device__ inline double Term(double x, double largest) {
  return exp(x - largest);
}
__device__ inline float Term(float x, float largest) {
  constexpr float kLog2E = 1.44269504f;
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"((x - largest) * kLog2E));
  return result;
}

// The largest element so far, NaN left out, and the sum of exp(x - largest) so far, NaN kept.
// Without initialisers, as shared memory has none.
template <typename W>
struct Partial {
  W largest, sum;
};

// With nothing but -inf so far, any finite number in place of it makes the terms 0.
template <typename W>
__device__ W ShiftFor(W largest) {
  return largest == -Infinity<W>() ? W{0} : largest;
}

template <typename W>
__device__ Partial<W> Join(const Partial<W>& a, const Partial<W>& b) {
  const W largest = max(a.largest, b.largest);
  const W shift = ShiftFor(largest);
  return {largest, a.sum * Term(a.largest, shift) + b.sum * Term(b.largest, shift)};
}

constexpr int kMostWarps = 16;

// The partial of all threads of a block, the same on each of them. All threads must come here, and
// must be together again before they come anew.
template <typename W>
__device__ Partial<W> JoinBlock(Partial<W> p) {
  __shared__ Partial<W> of_warp[kMostWarps];
  for (int step = kWarp / 2; step > 0; step /= 2) {
    p = Join(p, {__shfl_down_sync(~0U, p.largest, step), __shfl_down_sync(~0U, p.sum, step)});
  }
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = p;
  __syncthreads();
  p = of_warp[0];
  for (unsigned w = 1; w < blockDim.x / kWarp; ++w) p = Join(p, of_warp[w]);
  return p;
}

// Threads for rows of so many packs: each gets `share` of them, or more where the row is long.
inline std::int64_t ThreadsFor(std::int64_t packs, std::int64_t share) {
  std::int64_t threads = kWarp;
  while (threads < kMostWarps * kWarp && threads * share < packs) threads *= 2;
  return threads;
}

constexpr int kAhead = 4;  // Packs that a thread asks for before it waits.

template <typename T, int kLanes>
__device__ Partial<Wide<T>> PartialOfThread(const Pack<T, kLanes>* row, std::int64_t packs) {
  using W = Wide<T>;
  Partial<W> p = {-Infinity<W>(), 0};
#pragma unroll 1
  for (std::int64_t i = threadIdx.x; i < packs; i += kAhead * std::int64_t{blockDim.x}) {
    W v[kAhead][kLanes];
    W largest = p.largest;
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const std::int64_t at = i + a * std::int64_t{blockDim.x};
      Pack<T, kLanes> pack = {};
      if (at < packs) pack = row[at];
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        v[a][lane] = at < packs ? Widen(pack.lane[lane]) : -Infinity<W>();
        largest = max(largest, v[a][lane]);
      }
    }
    const W shift = ShiftFor(largest);
    p = {largest, p.sum * Term(p.largest, shift)};
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) p.sum += Term(v[a][lane], shift);
    }
  }
  return p;
}

template <typename T, int kLanes>
__device__ Pack<T, kLanes> Quotients(const Pack<T, kLanes>& in, Wide<T> largest, Wide<T> factor) {
  Pack<T, kLanes> out;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    out.lane[lane] = Narrow<T>(Term(Widen(in.lane[lane]), largest) * factor);
  }
  return out;
}

// What one block keeps of a row: three such blocks fit a multiprocessor, so that one computes while
// the others wait for memory. Longer rows are kept by the blocks of a cluster together.
constexpr std::int64_t kSegmentBytes = 64 << 10;
constexpr std::int64_t kMostCluster = 8;

// The partial of all blocks of the cluster. They must meet again before any of them ends or comes
// here anew: `arrive` is the first half of that meeting.
template <typename W>
__device__ Partial<W> JoinCluster(Partial<W> p) {
#if __CUDA_ARCH__ >= 900
  __shared__ Partial<W> of_block;
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) of_block = p;
  cluster.sync();
  p = *cluster.map_shared_rank(&of_block, 0);
  for (unsigned rank = 1; rank < cluster.num_blocks(); ++rank) {
    p = Join(p, *cluster.map_shared_rank(&of_block, rank));
  }
  cluster.barrier_arrive();
#endif
  return p;
}

// Each thread reads back only what it copied itself, so that nothing but the partials needs a
// meeting of threads. `segment` elements of a row are a block's, a whole number of packs.
template <typename T, int kLanes, bool kCluster>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    SharedKernel(const T* x, T* y, Rows rows, std::int64_t segment, int blocks_of_row) {
  using W = Wide<T>;
  extern __shared__ uint4 memory[];
  auto* kept = reinterpret_cast<Pack<T, kLanes>*>(memory);
  const std::int64_t first = blockIdx.x % blocks_of_row * segment;
  const auto packs =
      static_cast<int>(max(std::int64_t{0}, min(segment, rows.length - first)) / kLanes);
  const int threads = static_cast<int>(blockDim.x);
  for (std::int64_t r = blockIdx.x / blocks_of_row; r < rows.count;
       r += gridDim.x / blocks_of_row) {
    const auto* from = reinterpret_cast<const Pack<T, kLanes>*>(x + r * rows.length + first);
    auto* to = reinterpret_cast<Pack<T, kLanes>*>(y + r * rows.length + first);
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
      if constexpr (sizeof(Pack<T, kLanes>) == cuda::kPackBytes) {
        __pipeline_memcpy_async(kept + i, from + i, cuda::kPackBytes);
      } else {
        kept[i] = from[i];
      }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    Partial<W> p = JoinBlock(PartialOfThread<T, kLanes>(kept, packs));
    if constexpr (kCluster) p = JoinCluster(p);
    const W factor = 1 / p.sum;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
      to[i] = Quotients(kept[i], p.largest, factor);
    }
    if constexpr (kCluster) {
#if __CUDA_ARCH__ >= 900
      cooperative_groups::this_cluster().barrier_wait();
#endif
    } else {
      __syncthreads();
    }
  }
}

// Code for an older GPU, translated by the driver, runs on a newer one, but knows no clusters: each
// of its blocks would take its part of the row for the whole.
template <typename... Params>
absl::Status CheckKnowsClusters(void (*kernel)(Params...)) {
  cudaFuncAttributes attributes = {};
  GC_RETURN_IF_ERROR(cuda::ToStatus(cudaFuncGetAttributes(&attributes, kernel), "softmax.shared"));
  if (attributes.ptxVersion >= 90) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "softmax.shared: rows of this length want code for compute capability 9.0, this build has ",
      attributes.ptxVersion / 10, ".", attributes.ptxVersion % 10,
      " (GRIDCLOCK_CUDA_ARCHITECTURES); variant 'online' takes them"));
}

template <typename T, int kLanes, bool kCluster>
absl::Status LaunchShared(const Call& call, const Rows& rows, std::int64_t blocks_of_row) {
  constexpr std::int64_t kWhole = Pack<T>::kCount;
  const std::int64_t share = (rows.length + blocks_of_row - 1) / blocks_of_row;
  const std::int64_t segment = (share + kWhole - 1) / kWhole * kWhole;
  const std::int64_t bytes = segment * std::int64_t{sizeof(T)};
  const auto kernel = SharedKernel<T, kLanes, kCluster>;
  if constexpr (kCluster) GC_RETURN_IF_ERROR(CheckKnowsClusters(kernel));
  GC_RETURN_IF_ERROR(cuda::AllowShared(kernel, bytes));
  constexpr std::int64_t kShare = 8;  // Packs of a thread.
  const std::int64_t rows_at_once = std::min(rows.count, 0x7FFFFFFF / blocks_of_row);
  return cuda::Launch(call, kernel,
                      {.grid = {rows_at_once * blocks_of_row},
                       .block = {ThreadsFor(segment / kLanes, kShare)},
                       .shared_bytes = bytes,
                       .cluster = blocks_of_row},
                      call.In<T>(0), call.Out<T>(0), rows, segment,
                      static_cast<int>(blocks_of_row));
}

template <typename T, int kLanes>
absl::Status ChooseCluster(const Call& call, const Rows& rows) {
  const std::int64_t bytes = rows.length * std::int64_t{sizeof(T)};
  std::int64_t blocks = 1;
  while (blocks < kMostCluster && blocks * kSegmentBytes < bytes) blocks *= 2;
  return blocks == 1 ? LaunchShared<T, kLanes, false>(call, rows, 1)
                     : LaunchShared<T, kLanes, true>(call, rows, blocks);
}

constexpr int kRowsOfBlock = 4;
constexpr int kMostInRegisters = 1024;  // 32 elements of each thread of a warp.

template <typename W>
__device__ W LargestOfWarp(W v) {
  for (int step = kWarp / 2; step > 0; step /= 2) v = max(v, __shfl_xor_sync(~0U, v, step));
  return v;
}
template <typename W>
__device__ W SumOfWarp(W v) {
  for (int step = kWarp / 2; step > 0; step /= 2) v += __shfl_xor_sync(~0U, v, step);
  return v;
}

// One warp for each row: read once, each exponential taken once, written once.
template <typename T, int kLanes, int kPacks>
__global__ void __launch_bounds__(kRowsOfBlock* kWarp)
    RegistersKernel(const T* x, T* y, Rows rows) {
  using W = Wide<T>;
  const int thread = static_cast<int>(threadIdx.x) % kWarp;
  const int packs = static_cast<int>(rows.length) / kLanes;
  const std::int64_t step = std::int64_t{gridDim.x} * kRowsOfBlock;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kWarp;
       r < rows.count; r += step) {
    const auto* from = reinterpret_cast<const Pack<T, kLanes>*>(x + r * rows.length);
    auto* to = reinterpret_cast<Pack<T, kLanes>*>(y + r * rows.length);
    Pack<T, kLanes> in[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (p * kWarp + thread < packs) in[p] = from[p * kWarp + thread];
    }
    W v[kPacks][kLanes];
    W largest = -Infinity<W>();
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        v[p][lane] = p * kWarp + thread < packs ? Widen(in[p].lane[lane]) : -Infinity<W>();
        largest = max(largest, v[p][lane]);
      }
    }
    largest = LargestOfWarp(largest);
    W sum = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) sum += v[p][lane] = Term(v[p][lane], largest);
    }
    const W factor = 1 / SumOfWarp(sum);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (p * kWarp + thread >= packs) break;
      Pack<T, kLanes> out;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) out.lane[lane] = Narrow<T>(v[p][lane] * factor);
      to[p * kWarp + thread] = out;
    }
  }
}

// The fewest packs for each thread that hold a row.
template <typename T, int kLanes, int kPacks = 1>
absl::Status LaunchRegisters(const Call& call, const Rows& rows) {
  if constexpr (kPacks * kLanes * kWarp < kMostInRegisters) {
    if (rows.length > kPacks * kLanes * kWarp) {
      return LaunchRegisters<T, kLanes, 2 * kPacks>(call, rows);
    }
  }
  return cuda::Launch(
      call, RegistersKernel<T, kLanes, kPacks>,
      {.grid = {cuda::Blocks(rows.count, kRowsOfBlock)}, .block = {kRowsOfBlock * kWarp}},
      call.In<T>(0), call.Out<T>(0), rows);
}

}  // namespace gridclock::softmax

#endif  // GRIDCLOCK_KERNELS_CATALOG_SOFTMAX_CUDA_CUH_
