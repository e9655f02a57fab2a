// Kernels from rows to rows on a GPU (softmax, layernorm...): what threads, warps, blocks and
// clusters of blocks know of a row together, and the kernels that read each row once.
//
// What a kernel makes of a row is its Op:
//
//   Element                   what the tensors hold
//   State                     what is known of a part of a row; without initialisers, as shared
//                             memory has none
//   Row                       what each element of the row needs of the state of the whole
//   Nothing()                 the state of no elements
//   Padding()                 stands in Add for elements that there are not
//   Add(state, v, count)      v[0] to v[count - 1] as well; the rest of v is padding
//   Join(a, b)                the state of both parts
//   RowOf(state, length)
//   OfWarp(v, count, length)  the Row where a warp holds the whole row; may change v for
//                             FinishKept
//   ColumnsAt<kLanes>(pack)   what tensors of a row's length have at the elements of a pack
//   Finish(x, row, columns, lane), FinishKept(v, row, columns, lane)   the result
//   kReadsColumns             whether there are such tensors: then rows take turns with them
#ifndef GRIDCLOCK_KERNELS_CATALOG_ROWS_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_ROWS_CUDA_CUH_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock::rows {

using cuda::Narrow;
using cuda::Pack;
using cuda::Wide;
using cuda::Widen;

constexpr int kWarp = 32;
constexpr int kMostWarps = 16;

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
  bool aligned = cuda::AreAligned(call.Out<T>(0));
  for (std::size_t i = 0; i < call.inputs.size(); ++i) aligned &= cuda::AreAligned(call.In<T>(i));
  return aligned && rows.length % Pack<T>::kCount == 0;
}

template <class Op>
using WideOf = Wide<typename Op::Element>;

// The same of a structure, 32 bits at a time.
template <typename S>
__device__ S ShuffleDown(const S& s, int step) {
  static_assert(sizeof(S) % sizeof(unsigned) == 0);
  constexpr int kWords = sizeof(S) / sizeof(unsigned);
  unsigned words[kWords];
  memcpy(words, &s, sizeof(S));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(~0U, words[i], step);
  S result;
  memcpy(&result, words, sizeof(S));
  return result;
}

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

// The states of kRows rows of all threads of a block, the same on each of them. All threads must
// come here, and must be together again before they come anew.
template <class Op, int kRows>
__device__ void JoinBlock(typename Op::State (&s)[kRows]) {
  __shared__ typename Op::State of_warp[kRows][kMostWarps];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    for (int step = kWarp / 2; step > 0; step /= 2) s[r] = Op::Join(s[r], ShuffleDown(s[r], step));
    if (threadIdx.x % kWarp == 0) of_warp[r][threadIdx.x / kWarp] = s[r];
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    s[r] = of_warp[r][0];
    for (unsigned w = 1; w < blockDim.x / kWarp; ++w) s[r] = Op::Join(s[r], of_warp[r][w]);
  }
}

// The state of all blocks of the cluster. They must meet again before any of them ends or comes
// here anew: `arrive` is the first half of that meeting.
template <class Op>
__device__ typename Op::State JoinCluster(typename Op::State s) {
#if __CUDA_ARCH__ >= 900
  __shared__ typename Op::State of_block;
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) of_block = s;
  cluster.sync();
  s = *cluster.map_shared_rank(&of_block, 0);
  for (unsigned rank = 1; rank < cluster.num_blocks(); ++rank) {
    s = Op::Join(s, *cluster.map_shared_rank(&of_block, rank));
  }
  cluster.barrier_arrive();
#endif
  return s;
}

// Threads for rows of so many packs: each gets `share` of them, or more where the row is long.
inline std::int64_t ThreadsFor(std::int64_t packs, std::int64_t share) {
  std::int64_t threads = kWarp;
  while (threads < kMostWarps * kWarp && threads * share < packs) threads *= 2;
  return threads;
}

constexpr int kAhead = 4;  // Packs that a thread asks for before it waits.

template <class Op, int kLanes>
__device__ typename Op::State StateOfThread(const Pack<typename Op::Element, kLanes>* row,
                                            std::int64_t packs) {
  using W = WideOf<Op>;
  typename Op::State s = Op::Nothing();
#pragma unroll 1
  for (std::int64_t i = threadIdx.x; i < packs; i += kAhead * std::int64_t{blockDim.x}) {
    W v[kAhead * kLanes];
    int count = 0;
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const std::int64_t at = i + a * std::int64_t{blockDim.x};
      Pack<typename Op::Element, kLanes> pack = {};
      if (at < packs) {
        pack = row[at];
        count += kLanes;
      }
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        v[a * kLanes + lane] = at < packs ? Widen(pack.lane[lane]) : Op::Padding();
      }
    }
    s = Op::Add(s, v, count);
  }
  return s;
}

// The results of a pack that lies at `pack` in its row.
template <class Op, int kLanes, class Columns>
__device__ Pack<typename Op::Element, kLanes> Finished(const Op& op,
                                                       const Pack<typename Op::Element, kLanes>& in,
                                                       const typename Op::Row& row,
                                                       const Columns& columns) {
  Pack<typename Op::Element, kLanes> out;
#pragma unroll
  for (int lane = 0; lane < kLanes; ++lane) {
    out.lane[lane] =
        Narrow<typename Op::Element>(op.Finish(Widen(in.lane[lane]), row, columns, lane));
  }
  return out;
}

// --- online: two readings ---

// One block for each row. The second reading goes backwards: what was read last may still be in the
// cache.
template <class Op, int kLanes>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    OnlineKernel(Op op, const typename Op::Element* x, typename Op::Element* y, Rows rows) {
  using ElementPack = Pack<typename Op::Element, kLanes>;
  const std::int64_t packs = rows.length / kLanes;
  for (std::int64_t r = blockIdx.x; r < rows.count; r += gridDim.x) {
    const auto* from = reinterpret_cast<const ElementPack*>(x + r * rows.length);
    auto* to = reinterpret_cast<ElementPack*>(y + r * rows.length);
    typename Op::State s[1] = {StateOfThread<Op, kLanes>(from, packs)};
    JoinBlock<Op>(s);
    const typename Op::Row row = op.RowOf(s[0], rows.length);
#pragma unroll 4
    for (std::int64_t i = packs - 1 - threadIdx.x; i >= 0; i -= blockDim.x) {
      to[i] = Finished(op, from[i], row, op.template ColumnsAt<kLanes>(i));
    }
    __syncthreads();
  }
}

template <int kLanes, class Op>
absl::Status LaunchOnline(const Call& call, const Rows& rows, const Op& op) {
  using T = typename Op::Element;
  const std::int64_t threads = ThreadsFor(rows.length / kLanes, kAhead);
  return cuda::Launch(call, OnlineKernel<Op, kLanes>,
                      {.grid = {cuda::Blocks(rows.count, 1)}, .block = {threads}}, op,
                      call.In<T>(0), call.Out<T>(0), rows);
}

template <class Op>
absl::Status Online(const Call& call, const Op& op) {
  using T = typename Op::Element;
  const Rows rows = RowsOf(call);
  return InPacks<T>(call, rows) ? LaunchOnline<Pack<T>::kCount>(call, rows, op)
                                : LaunchOnline<1>(call, rows, op);
}

// --- shared: a row stays in the shared memory of a block, or of a cluster of them ---

// What one block keeps of a row: three such blocks fit a multiprocessor, so that one computes while
// the others wait for memory. Longer rows are kept by the blocks of a cluster together.
constexpr std::int64_t kSegmentBytes = 64 << 10;
constexpr std::int64_t kMostCluster = 8;

// kRows rows at a time: what an Op reads of columns is then read once for all of them. Each thread
// reads back only what it copied itself, so that nothing but the states needs a meeting of threads.
// `segment` elements of a row are a block's, a whole number of packs.
template <class Op, int kLanes, int kRows, bool kCluster>
__global__ void __launch_bounds__(kMostWarps* kWarp)
    SharedKernel(Op op, const typename Op::Element* x, typename Op::Element* y, Rows rows,
                 std::int64_t segment, int blocks_of_row) {
  using ElementPack = Pack<typename Op::Element, kLanes>;
  extern __shared__ uint4 memory[];
  auto* kept = reinterpret_cast<ElementPack*>(memory);
  const std::int64_t first = blockIdx.x % blocks_of_row * segment;
  const auto packs =
      static_cast<int>(max(std::int64_t{0}, min(segment, rows.length - first)) / kLanes);
  const auto stride = static_cast<int>(segment / kLanes);
  const int threads = static_cast<int>(blockDim.x);
  for (std::int64_t r = blockIdx.x / blocks_of_row * std::int64_t{kRows}; r < rows.count;
       r += gridDim.x / blocks_of_row * std::int64_t{kRows}) {
    const auto left = static_cast<int>(min(rows.count - r, std::int64_t{kRows}));
    const auto here = [left](int k) { return kRows == 1 || k < left; };
    const typename Op::Element* const from = x + r * rows.length + first;
    typename Op::Element* const to = y + r * rows.length + first;
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (!here(k)) break;
      const auto* row = reinterpret_cast<const ElementPack*>(from + k * rows.length);
      for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
        if constexpr (sizeof(ElementPack) == cuda::kPackBytes) {
          __pipeline_memcpy_async(kept + k * stride + i, row + i, cuda::kPackBytes);
        } else {
          kept[k * stride + i] = row[i];
        }
      }
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    typename Op::State s[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      s[k] = StateOfThread<Op, kLanes>(kept + k * stride, here(k) ? packs : 0);
    }
    JoinBlock<Op>(s);
    if constexpr (kCluster) s[0] = JoinCluster<Op>(s[0]);
    typename Op::Row of[kRows];
#pragma unroll
    for (int k = 0; k < kRows; ++k) of[k] = op.RowOf(s[k], rows.length);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += threads) {
      const auto columns = op.template ColumnsAt<kLanes>(first / kLanes + i);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (!here(k)) break;
        auto* row = reinterpret_cast<ElementPack*>(to + k * rows.length);
        row[i] = Finished(op, kept[k * stride + i], of[k], columns);
      }
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
absl::Status CheckKnowsClusters(const Call& call, void (*kernel)(Params...)) {
  const std::string name = call.binding->spec->name + ".shared";
  cudaFuncAttributes attributes = {};
  GC_RETURN_IF_ERROR(cuda::ToStatus(cudaFuncGetAttributes(&attributes, kernel), name));
  if (attributes.ptxVersion >= 90) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      name, ": rows of this length want code for compute capability 9.0, this build has ",
      attributes.ptxVersion / 10, ".", attributes.ptxVersion % 10,
      " (GRIDCLOCK_CUDA_ARCHITECTURES); variant 'online' takes them"));
}

template <int kLanes, int kRows, bool kCluster, class Op>
absl::Status LaunchShared(const Call& call, const Rows& rows, const Op& op,
                          std::int64_t blocks_of_row) {
  using T = typename Op::Element;
  constexpr std::int64_t kWhole = Pack<T>::kCount;
  const std::int64_t share = (rows.length + blocks_of_row - 1) / blocks_of_row;
  const std::int64_t segment = (share + kWhole - 1) / kWhole * kWhole;
  const std::int64_t bytes = kRows * segment * std::int64_t{sizeof(T)};
  const auto kernel = SharedKernel<Op, kLanes, kRows, kCluster>;
  if constexpr (kCluster) GC_RETURN_IF_ERROR(CheckKnowsClusters(call, kernel));
  GC_RETURN_IF_ERROR(cuda::AllowShared(kernel, bytes));
  constexpr std::int64_t kShare = 8;  // Packs of a thread.
  const std::int64_t groups = (rows.count + kRows - 1) / kRows;
  const std::int64_t groups_at_once = std::min(groups, 0x7FFFFFFF / blocks_of_row);
  return cuda::Launch(call, kernel,
                      {.grid = {groups_at_once * blocks_of_row},
                       .block = {ThreadsFor(segment / kLanes, kShare)},
                       .shared_bytes = bytes,
                       .cluster = blocks_of_row},
                      op, call.In<T>(0), call.Out<T>(0), rows, segment,
                      static_cast<int>(blocks_of_row));
}

template <int kLanes, class Op>
absl::Status ChooseCluster(const Call& call, const Rows& rows, const Op& op) {
  const std::int64_t bytes = rows.length * std::int64_t{sizeof(typename Op::Element)};
  if constexpr (Op::kReadsColumns) {
    constexpr std::int64_t kManyRows = 2048;  // Half as many blocks still fill a GPU.
    if (2 * bytes <= kSegmentBytes && rows.count >= kManyRows) {
      return LaunchShared<kLanes, 2, false>(call, rows, op, 1);
    }
  }
  std::int64_t blocks = 1;
  while (blocks < kMostCluster && blocks * kSegmentBytes < bytes) blocks *= 2;
  return blocks == 1 ? LaunchShared<kLanes, 1, false>(call, rows, op, 1)
                     : LaunchShared<kLanes, 1, true>(call, rows, op, blocks);
}

template <class Op>
absl::Status Shared(const Call& call, const Op& op) {
  using T = typename Op::Element;
  const Rows rows = RowsOf(call);
  return InPacks<T>(call, rows) ? ChooseCluster<Pack<T>::kCount>(call, rows, op)
                                : ChooseCluster<1>(call, rows, op);
}

// --- registers: a row stays in the registers of a warp ---

constexpr int kRowsOfBlock = 4;
constexpr int kMostInRegisters = 1024;  // 32 elements of each thread of a warp.

// One warp for each row: read once, written once, and all between in registers.
template <class Op, int kLanes, int kPacks>
__global__ void __launch_bounds__(kRowsOfBlock* kWarp)
    RegistersKernel(Op op, const typename Op::Element* x, typename Op::Element* y, Rows rows) {
  using T = typename Op::Element;
  const int thread = static_cast<int>(threadIdx.x) % kWarp;
  const int packs = static_cast<int>(rows.length) / kLanes;
  const std::int64_t step = std::int64_t{gridDim.x} * kRowsOfBlock;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.x / kWarp;
       r < rows.count; r += step) {
    const auto* from = reinterpret_cast<const Pack<T, kLanes>*>(x + r * rows.length);
    auto* to = reinterpret_cast<Pack<T, kLanes>*>(y + r * rows.length);
    Pack<T, kLanes> in[kPacks];
    int count = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (T& lane : in[p].lane) lane = Narrow<T>(Op::Padding());
      if (p * kWarp + thread >= packs) continue;
      in[p] = from[p * kWarp + thread];
      count += kLanes;
    }
    WideOf<Op> v[kPacks * kLanes];
#pragma unroll
    for (int i = 0; i < kPacks * kLanes; ++i) v[i] = Widen(in[i / kLanes].lane[i % kLanes]);
    const typename Op::Row row = op.OfWarp(v, count, rows.length);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (p * kWarp + thread >= packs) break;
      const auto columns = op.template ColumnsAt<kLanes>(p * kWarp + thread);
      Pack<T, kLanes> out;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        out.lane[lane] = Narrow<T>(op.FinishKept(v[p * kLanes + lane], row, columns, lane));
      }
      to[p * kWarp + thread] = out;
    }
  }
}

// The fewest packs for each thread that hold a row.
template <int kLanes, int kPacks = 1, class Op>
absl::Status LaunchRegisters(const Call& call, const Rows& rows, const Op& op) {
  using T = typename Op::Element;
  if constexpr (kPacks * kLanes * kWarp < kMostInRegisters) {
    if (rows.length > kPacks * kLanes * kWarp) {
      return LaunchRegisters<kLanes, 2 * kPacks>(call, rows, op);
    }
  }
  return cuda::Launch(
      call, RegistersKernel<Op, kLanes, kPacks>,
      {.grid = {cuda::Blocks(rows.count, kRowsOfBlock)}, .block = {kRowsOfBlock * kWarp}}, op,
      call.In<T>(0), call.Out<T>(0), rows);
}

template <class Op>
absl::Status Registers(const Call& call, const Op& op) {
  using T = typename Op::Element;
  if constexpr (std::is_same_v<T, double>) {
    return absl::InternalError(call.binding->spec->name + ".registers does not take f64");
  } else {
    const Rows rows = RowsOf(call);
    return InPacks<T>(call, rows) ? LaunchRegisters<Pack<T>::kCount>(call, rows, op)
                                  : LaunchRegisters<1>(call, rows, op);
  }
}

// What their words say: rows that the shared memory of a cluster holds (of a block before compute
// capability 9.0), or a warp.
inline constexpr const char* kSharedTakes = "when N <= (sm >= 90 ? 786432 : 49152) / sizeof(T)";
inline constexpr const char* kRegistersTake = "when N <= 1024 && sizeof(T) <= 4";

// The Op of a kernel, made for the dtype of the call: by `MakeOp<T>()(call)`.
template <template <typename> class Op, typename Variant>
absl::Status WithOp(const Call& call, Variant variant) {
  if (RowsOf(call).count == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    return variant(call, Op<decltype(element)>::Make(call));
  });
}

template <template <typename> class Op>
absl::Status OnlineVariant(const Call& call) {
  return WithOp<Op>(call, [](const Call& c, const auto& op) { return Online(c, op); });
}
template <template <typename> class Op>
absl::Status SharedVariant(const Call& call) {
  return WithOp<Op>(call, [](const Call& c, const auto& op) { return Shared(c, op); });
}
template <template <typename> class Op>
absl::Status RegistersVariant(const Call& call) {
  return WithOp<Op>(call, [](const Call& c, const auto& op) { return Registers(c, op); });
}

// An Op without tensors of a row's length.
struct NoColumns {
  static constexpr bool kReadsColumns = false;
  struct Columns {};
  template <int kLanes>
  __device__ Columns ColumnsAt(std::int64_t) const {
    return {};
  }
};

}  // namespace gridclock::rows

#endif  // GRIDCLOCK_KERNELS_CATALOG_ROWS_CUDA_CUH_
