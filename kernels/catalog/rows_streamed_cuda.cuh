// Rows that stream through blocks which keep what belongs to their columns (layernorm, rmsnorm).
//
// Where weights are read for every row, the cache moves as much as memory does, or twice that, and
// for long rows it is what limits. Here a thread keeps the weights of its columns in registers, for
// all rows of its block, or of a cluster of blocks that a row is cut between. As many run as the
// GPU holds at once; the rows to come are under way to shared memory meanwhile.
//
// On an H200, f32, `shared` and then this: layernorm of 8192 x 8192 152 and 142 us, of
// 1024 x 131072 425 and 416; rmsnorm 138 and 141, 343 and 295. A copy takes 126 and 253: what
// remains in a cluster is its meeting for each row, which also waits for the results of the row
// before.
//
// Beside what rows_cuda.cuh says of it an Op has
//
//   OfThreads(v, count, held, sum)   the state of the `held` elements of some threads, of which
//   this
//                                    one has v[0] to v[count - 1]; sum(w) adds up what each gives
#ifndef GRIDCLOCK_KERNELS_CATALOG_ROWS_STREAMED_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_ROWS_STREAMED_CUDA_CUH_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/rows_cuda.cuh"

namespace gridclock::rows {

constexpr int kStages = 3;          // Rows under way.
constexpr int kStreamedBlocks = 2;  // On a multiprocessor: one computes while the other waits.
constexpr std::int64_t kMostStreamedCluster = 16;

template <typename T>
inline constexpr int kPacksOfThread = sizeof(T) < 4 ? 2 : 4;

// What the first thread of a warp has.
template <typename S>
__device__ S OfFirstLane(const S& s) {
  constexpr int kWords = sizeof(S) / sizeof(unsigned);
  unsigned words[kWords];
  memcpy(words, &s, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_sync(~0U, words[i], 0);
  S result;
  memcpy(&result, words, sizeof(S));
  return result;
}

// Sums of the threads of a block, on all of them. One meeting is enough for each: what a warp wrote
// is written over two sums later.
template <typename W>
class BlockSum {
 public:
  __device__ explicit BlockSum(W* room) : room_(room) {}
  __device__ W operator()(W v) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    W* const of_warp = room_ + turn_ * kMostWarps;
    turn_ = 1 - turn_;
    v = SumOfWarp(v);
    if (lane == 0) of_warp[threadIdx.x / kWarp] = v;
    __syncthreads();
    return SumOfWarp(lane < static_cast<int>(blockDim.x) / kWarp ? of_warp[lane] : W{0});
  }

 private:
  W* room_;
  int turn_ = 0;
};

// The state of the whole row from those of the blocks of a cluster, which each block's threads
// know. Each tells all others its own, so that only one meeting is waited for.
template <class Op>
__device__ typename Op::State JoinTold(typename Op::State s, typename Op::State* room) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned lane = threadIdx.x % kWarp;
  if (threadIdx.x < cluster.num_blocks()) {
    *cluster.map_shared_rank(room + cluster.block_rank(), threadIdx.x) = s;
  }
  cluster.sync();
  s = lane < cluster.num_blocks() ? room[lane] : Op::Nothing();
  for (int step = kMostStreamedCluster / 2; step > 0; step /= 2) {
    s = Op::Join(s, ShuffleDown(s, step));
  }
  s = OfFirstLane(s);
#endif
  return s;
}

// What a thread has of each row: the same packs, of which it reads back only what it copied itself.
template <class Op, int kLanes>
struct Share {
  using T = typename Op::Element;
  using ElementPack = Pack<T, kLanes>;
  static constexpr int kPacks = kPacksOfThread<T>;
  static constexpr int kElements = kPacks * kLanes;

  ElementPack* ring;   // kStages times the segment of a block.
  std::int64_t first;  // Pack of the row that the block begins with.
  int segment, packs;  // Packs of a block, and of this one: the last may have fewer.

  // body(p, i): the thread's p-th pack is the block's i-th.
  template <typename Body>
  __device__ void ForEach(Body body) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int i = p * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x);
      if (i < packs) body(p, i);
    }
  }

  // Of nothing too it is a stage: what is waited for is counted.
  __device__ void Fetch(const T* x, const Rows& rows, std::int64_t r, int slot) const {
    if (r < rows.count) {
      const auto* row = reinterpret_cast<const ElementPack*>(x + r * rows.length) + first;
      ForEach([&](int, int i) {
        __pipeline_memcpy_async(ring + slot * segment + i, row + i, sizeof(ElementPack));
      });
    }
    __pipeline_commit();
  }

  __device__ void Take(int slot, WideOf<Op> (&v)[kElements]) const {
#pragma unroll
    for (auto& element : v) element = Op::Padding();
    ForEach([&](int p, int i) {
      const ElementPack in = ring[slot * segment + i];
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) v[p * kLanes + lane] = Widen(in.lane[lane]);
    });
  }
};

template <class Op, int kLanes, bool kCluster>
__global__ void __launch_bounds__(kMostWarps* kWarp, kStreamedBlocks)
    StreamedKernel(Op op, const typename Op::Element* x, typename Op::Element* y, Rows rows,
                   int segment, int blocks_of_row) {
  using Mine = Share<Op, kLanes>;
  extern __shared__ uint4 memory[];
  __shared__ WideOf<Op> sums[2 * kMostWarps];
  __shared__ typename Op::State states[2][kMostStreamedCluster];
  BlockSum<WideOf<Op>> sum(sums);
  const std::int64_t first = std::int64_t{blockIdx.x % blocks_of_row} * segment;
  const int packs = static_cast<int>(min(std::int64_t{segment}, rows.length / kLanes - first));
  const Mine mine{reinterpret_cast<typename Mine::ElementPack*>(memory), first, segment, packs};
  const std::int64_t begin = blockIdx.x / blocks_of_row, step = gridDim.x / blocks_of_row;
  for (int stage = 0; stage < kStages; ++stage) mine.Fetch(x, rows, begin + stage * step, stage);
  typename Op::template Columns<kLanes> columns[Mine::kPacks];
  int count = 0;
  mine.ForEach([&](int p, int i) {
    columns[p] = op.template ColumnsAt<kLanes>(first + i);
    count += kLanes;
  });
#if __CUDA_ARCH__ >= 900
  if constexpr (kCluster) cooperative_groups::this_cluster().sync();  // All blocks have begun.
#endif
  int slot = 0, turn = 0;
  for (std::int64_t r = begin; r < rows.count; r += step) {
    __pipeline_wait_prior(kStages - 1);
    WideOf<Op> v[Mine::kElements];
    mine.Take(slot, v);
    typename Op::State s = op.OfThreads(v, count, std::int64_t{packs} * kLanes, sum);
    if constexpr (kCluster) {
      s = JoinTold<Op>(s, states[turn]);
      turn = 1 - turn;
    }
    const typename Op::Row row = op.RowOf(s, rows.length);
    auto* to = reinterpret_cast<typename Mine::ElementPack*>(y + r * rows.length) + first;
    // Read anew: elements that are kept meanwhile cost registers that the columns want.
    mine.ForEach([&](int p, int i) {
      to[i] = Finished(op, mine.ring[slot * segment + i], row, columns[p]);
    });
    mine.Fetch(x, rows, r + kStages * step, slot);
    slot = slot + 1 == kStages ? 0 : slot + 1;
  }
}

template <class Op, bool kCluster>
absl::Status LaunchStreamed(const Call& call, const Rows& rows, const Op& op,
                            std::int64_t blocks_of_row) {
  using T = typename Op::Element;
  constexpr int kLanes = Pack<T>::kCount;
  const auto kernel = StreamedKernel<Op, kLanes, kCluster>;
  const std::int64_t packs = rows.length / kLanes;
  const std::int64_t segment = (packs + blocks_of_row - 1) / blocks_of_row;
  cuda::Geometry g = {.block = {ThreadsFor(segment, kPacksOfThread<T>)},
                      .shared_bytes = kStages * segment * cuda::kPackBytes,
                      .cluster = blocks_of_row};
  GC_RETURN_IF_ERROR(cuda::AllowShared(kernel, g.shared_bytes));
  GC_RETURN_IF_ERROR(cuda::AllowClusters(kernel));
  GC_ASSIGN_OR_RETURN(const std::int64_t at_once, cuda::ClustersAtOnce(kernel, g));
  if (at_once == 0) return Shared(call, op);  // A part of a GPU, with too few multiprocessors.
  g.grid.x = std::min(rows.count, at_once) * blocks_of_row;
  return cuda::Launch(call, kernel, g, op, call.In<T>(0), call.Out<T>(0), rows,
                      static_cast<int>(segment), static_cast<int>(blocks_of_row));
}

// Rows that lie askew are left to `shared`.
template <class Op>
absl::Status Streamed(const Call& call, const Op& op) {
  using T = typename Op::Element;
  const Rows rows = RowsOf(call);
  if (!InPacks<T>(call, rows)) return Shared(call, op);
  constexpr std::int64_t kOfBlock = kMostWarps * kWarp * kPacksOfThread<T> * Pack<T>::kCount;
  std::int64_t blocks = 1;
  while (blocks * kOfBlock < rows.length) blocks *= 2;
  return blocks == 1 ? LaunchStreamed<Op, false>(call, rows, op, 1)
                     : LaunchStreamed<Op, true>(call, rows, op, blocks);
}

// What its words say: rows that the registers of a cluster of 16 blocks hold, which GPUs of 12.0 do
// not have. Left out is where `shared` is faster: where blocks have few threads, and in clusters of
// two (4096 rows of 16384 f32: layernorm 157 and 177 us).
inline constexpr const char* kStreamedTakes =
    "when sm >= 90 && sm < 120 && N <= min(131072, 524288 / sizeof(T)) && "
    "(N <= 4096 / sizeof(T) || N > 8192 / sizeof(T)) && "
    "(N <= 32768 / sizeof(T) || N > 65536 / sizeof(T))";

template <template <typename> class Op>
absl::Status StreamedVariant(const Call& call) {
  return WithOp<Op>(call, [](const Call& c, const auto& op) { return Streamed(c, op); });
}

}  // namespace gridclock::rows

#endif  // GRIDCLOCK_KERNELS_CATALOG_ROWS_STREAMED_CUDA_CUH_
