// Rows that stream through blocks which keep what belongs to their columns (layernorm, rmsnorm).
//
// Where weights are read for every row, the cache moves as much as memory does, or twice that, and
// for long rows it is what limits. Here a thread keeps the weights of its columns in registers, for
// all rows of its block, or of a cluster of blocks that a row is cut between. As many run as the
// GPU holds at once; the rows to come are under way to shared memory meanwhile.
//
// The blocks of a cluster meet once for each row, one row ahead: while a block waits for what the
// others know of a row it sums up the next, and what it tells of that does not wait for the results
// of this row to reach memory. On an H200, f32 1024 x 131072, layernorm takes 320 us, rmsnorm 284,
// a copy 251; by one meeting after another, and two in each block, layernorm took 378.
//
// Beside what rows_cuda.cuh says of it an Op has
//
//   OfLanes(v, count, held)   the state of the `held` elements of a warp, of which this thread has
//                             v[0] to v[count - 1]
//   JoinLanes(s, held)        the state of the `held` elements that the states of a warp's lanes
//                             are of; on all lanes
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
constexpr int kStreamedWarps = 8;
constexpr std::int64_t kMostStreamedCluster = 16;

// As many elements and columns as registers hold. Few threads with many each meet faster than many
// with few.
template <typename T>
inline constexpr int kPacksOfThread = sizeof(T) < 4 ? 4 : 8;

// How the blocks of a cluster tell each other what they know of a row. What is heard must be read
// before the next row is told: then it is written over.
template <class Op>
class Cluster {
 public:
  using State = typename Op::State;
  __device__ explicit Cluster(State (*room)[kMostStreamedCluster]) : room_(room) {}

#if __CUDA_ARCH__ >= 900
  // All blocks have begun.
  __device__ void Begin() const {
    cooperative_groups::this_cluster().sync();
  }
  __device__ void Tell(const State& s, int turn) const {
    const auto cluster = cooperative_groups::this_cluster();
    if (threadIdx.x < cluster.num_blocks()) {
      *cluster.map_shared_rank(&room_[turn][cluster.block_rank()], threadIdx.x) = s;
    }
    cluster.barrier_arrive();
  }
  // On each lane the state of another block.
  __device__ State Hear(int turn) const {
    const auto cluster = cooperative_groups::this_cluster();
    cluster.barrier_wait();
    const unsigned lane = threadIdx.x % kWarp;
    return lane < cluster.num_blocks() ? room_[turn][lane] : Op::Nothing();
  }
#else
  __device__ void Begin() const {}
  __device__ void Tell(const State&, int) const {}
  __device__ State Hear(int) const {
    return Op::Nothing();
  }
#endif

 private:
  State (*room_)[kMostStreamedCluster];
};

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

// The state of a block's part of a row, on all threads. One meeting is enough: what a warp wrote is
// written over two rows later.
template <class Op, int kLanes>
class BlockStates {
 public:
  using State = typename Op::State;
  __device__ BlockStates(const Share<Op, kLanes>& mine, State (*room)[kStreamedWarps])
      : mine_(mine), room_(room) {
    mine_.ForEach([&](int, int) { count_ += kLanes; });
    of_warp_ = SumOfWarp(static_cast<WideOf<Op>>(count_));
  }

  __device__ State Of(int slot) {
    WideOf<Op> v[Share<Op, kLanes>::kElements];
    mine_.Take(slot, v);
    const State of_warp = Op::OfLanes(v, count_, of_warp_);
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    State* const of_warps = room_[turn_];
    turn_ = 1 - turn_;
    if (lane == 0) of_warps[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    return Op::JoinLanes(
        lane < static_cast<int>(blockDim.x) / kWarp ? of_warps[lane] : Op::Nothing(),
        static_cast<WideOf<Op>>(mine_.packs * kLanes));
  }

 private:
  const Share<Op, kLanes>& mine_;
  State (*room_)[kStreamedWarps];
  WideOf<Op> of_warp_;  // Elements.
  int count_ = 0, turn_ = 0;
};

template <class Op, int kLanes, bool kCluster>
__global__ void __launch_bounds__(kStreamedWarps* kWarp, kStreamedBlocks)
    StreamedKernel(Op op, const typename Op::Element* x, typename Op::Element* y, Rows rows,
                   int segment, int blocks_of_row) {
  using Mine = Share<Op, kLanes>;
  extern __shared__ uint4 memory[];
  __shared__ typename Op::State of_warps[2][kStreamedWarps];
  __shared__ typename Op::State of_blocks[2][kMostStreamedCluster];
  const std::int64_t first = std::int64_t{blockIdx.x % blocks_of_row} * segment;
  const int packs = static_cast<int>(min(std::int64_t{segment}, rows.length / kLanes - first));
  const Mine mine{reinterpret_cast<typename Mine::ElementPack*>(memory), first, segment, packs};
  const std::int64_t begin = blockIdx.x / blocks_of_row, step = gridDim.x / blocks_of_row;
  for (int stage = 0; stage < kStages; ++stage) mine.Fetch(x, rows, begin + stage * step, stage);
  typename Op::template Columns<kLanes> columns[Mine::kPacks];
  mine.ForEach([&](int p, int i) { columns[p] = op.template ColumnsAt<kLanes>(first + i); });
  BlockStates<Op, kLanes> block(mine, of_warps);
  // Then the slot is free for another row. Elements are read anew: to keep them costs registers
  // that the columns want.
  const auto finish = [&](std::int64_t r, int slot, const typename Op::State& s) {
    const typename Op::Row row = op.RowOf(s, rows.length);
    auto* to = reinterpret_cast<typename Mine::ElementPack*>(y + r * rows.length) + first;
    mine.ForEach([&](int p, int i) {
      to[i] = Finished(op, mine.ring[slot * segment + i], row, columns[p]);
    });
    mine.Fetch(x, rows, r + kStages * step, slot);
  };
  const auto after = [](int slot) { return slot + 1 == kStages ? 0 : slot + 1; };
  if constexpr (!kCluster) {
    int slot = 0;
    for (std::int64_t r = begin; r < rows.count; r += step, slot = after(slot)) {
      __pipeline_wait_prior(kStages - 1);
      finish(r, slot, block.Of(slot));
    }
  } else {
    const Cluster<Op> cluster(of_blocks);
    cluster.Begin();
    __pipeline_wait_prior(kStages - 1);
    cluster.Tell(block.Of(0), 0);
    int slot = 0, turn = 0;
    for (std::int64_t r = begin; r < rows.count; r += step) {
      const int next = after(slot);
      const bool more = r + step < rows.count;
      typename Op::State of_next = Op::Nothing();
      if (more) {
        __pipeline_wait_prior(kStages - 2);
        of_next = block.Of(next);
      }
      const typename Op::State heard = cluster.Hear(turn);
      turn = 1 - turn;
      if (more) cluster.Tell(of_next, turn);
      finish(r, slot, Op::JoinLanes(heard, static_cast<WideOf<Op>>(rows.length)));
      slot = next;
    }
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
  constexpr std::int64_t kOfBlock = kStreamedWarps * kWarp * kPacksOfThread<T> * Pack<T>::kCount;
  std::int64_t blocks = 1;
  while (blocks * kOfBlock < rows.length) blocks *= 2;
  return blocks == 1 ? LaunchStreamed<Op, false>(call, rows, op, 1)
                     : LaunchStreamed<Op, true>(call, rows, op, blocks);
}

// What its words say: rows that the registers of a cluster of 16 blocks hold, which GPUs of 12.0 do
// not have. Left out is where `shared` is as fast or faster: where blocks have few threads, and in
// small clusters (bf16 N = 16384, 4096 rows: layernorm 115 and 99 us, rmsnorm 96 and 79).
inline constexpr const char* kStreamedTakes =
    "when sm >= 90 && sm < 120 && N <= min(131072, 524288 / sizeof(T)) && "
    "(N <= 4096 / sizeof(T) || N > 8192 / sizeof(T)) && "
    "(N <= min(8192, 32768 / sizeof(T)) || N > 65536 / sizeof(T))";

template <template <typename> class Op>
absl::Status StreamedVariant(const Call& call) {
  return WithOp<Op>(call, [](const Call& c, const auto& op) { return Streamed(c, op); });
}

}  // namespace gridclock::rows

#endif  // GRIDCLOCK_KERNELS_CATALOG_ROWS_STREAMED_CUDA_CUH_
