// The whole of an element-wise kernel on a GPU: y[i] = op(x0[i], x1[i]...), computed wide. An input
// may be y itself.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CUDA_MAP_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_CUDA_MAP_CUH_

#include <cstdint>
#include <utility>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock::cuda {

template <typename In, int kInputs>
struct Inputs {
  const In* at[kInputs];
};

// One element for each thread, or all of them for few threads.
template <typename Out, typename Op, typename In, int kInputs>
__global__ void MapKernel(Op op, Out* y, Inputs<In, kInputs> x, std::int64_t n) {
#pragma unroll 1
  for (std::int64_t i = GridThread(); i < n; i += GridThreads()) {
    [&]<int... k>(std::integer_sequence<int, k...>) {
      y[i] = Narrow<Out>(op(Widen(x.at[k][i])...));
    }
    (std::make_integer_sequence<int, kInputs>());
  }
}

// Elements that are converted together: as many as fill a pack of the wider type.
template <typename A, typename B>
inline constexpr int kMapLanes = kPackBytes /
                                 static_cast<int>(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));

inline constexpr int kMapThreads = 256;

// What goes pack by pack, and the elements behind: fewer than a pack.
template <typename Index>
struct Split {
  Index packs = 0;
  int rest = 0;
};

// kPacks packs for each thread, all asked for before the first is used. What a thread does before
// it asks counts where the whole takes 2 us: a loop that none runs twice costs 0.2 us of relu of
// 1e6 f32, so there is no division either, and the rest comes last.
template <int kThreads, int kPacks, typename Index, typename Out, typename Op, typename In,
          int kInputs>
__global__ void __launch_bounds__(kThreads)
    MapPacksKernel(Op op, Out* y, Inputs<In, kInputs> x, Split<Index> split) {
  constexpr int kLanes = kMapLanes<In, Out>;
  using InPack = Pack<In, kLanes>;
  using OutPack = Pack<Out, kLanes>;
  constexpr auto kEach = std::make_integer_sequence<int, kInputs>();
  const Index i = Index{blockIdx.x} * (kThreads * kPacks) + threadIdx.x;
  InPack in[kPacks][kInputs];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (i + p * kThreads >= split.packs) break;
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      in[p][k] = (reinterpret_cast<const InPack*>(x.at[k]) + i)[p * kThreads];
    }
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (i + p * kThreads >= split.packs) break;
    OutPack out;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      [&]<int... k>(std::integer_sequence<int, k...>) {
        out.lane[lane] = Narrow<Out>(op(Widen(in[p][k].lane[lane])...));
      }
      (kEach);
    }
    (reinterpret_cast<OutPack*>(y) + i)[p * kThreads] = out;
  }
  if (i >= static_cast<Index>(split.rest)) return;
  const std::int64_t rest = std::int64_t{split.packs} * kLanes + i;
  [&]<int... k>(std::integer_sequence<int, k...>) {
    y[rest] = Narrow<Out>(op(Widen(x.at[k][rest])...));
  }
  (kEach);
}

// On so many threads as the geometry has.
template <typename Out, typename Op, typename... In>
absl::Status MapOn(const Call& call, const Geometry& geometry, Op op, Out* y, std::int64_t n,
                   const In*... x) {
  if (n == 0) return absl::OkStatus();
  using Input = std::common_type_t<In...>;
  constexpr int kInputs = sizeof...(In);
  return Launch(call, MapKernel<Out, Op, Input, kInputs>, geometry, op, y,
                Inputs<Input, kInputs>{{x...}}, n);
}

// One thread for each element.
template <typename Out, typename Op, typename... In>
absl::Status Map(const Call& call, Op op, Out* y, std::int64_t n, const In*... x) {
  return MapOn(call, {.grid = {Blocks(n, kMapThreads)}, .block = {kMapThreads}}, op, y, n, x...);
}

template <int kThreads, int kPacks, typename Index, typename Out, typename Op, typename In,
          int kInputs>
absl::Status LaunchPacks(const Call& call, Op op, Out* y, Inputs<In, kInputs> x, std::int64_t n) {
  constexpr int kLanes = kMapLanes<In, Out>;
  const Split<Index> split{static_cast<Index>(n / kLanes), static_cast<int>(n % kLanes)};
  return Launch(call, MapPacksKernel<kThreads, kPacks, Index, Out, Op, In, kInputs>,
                {.grid = {Blocks(n / kLanes, kThreads * kPacks)}, .block = {kThreads}}, op, y, x,
                split);
}

// 16 bytes at a time; what lies askew in memory goes one element at a time.
//
// One pack for each thread: the blocks that start as others end keep a GPU's memory busy. On an
// H200 two packs a thread cost 3 %, four 4 %, and a loop over a grid of resident blocks 8 to 14 %
// (square of 2^28 f32: 506, 522, 525 and 548 to 578 us; its copy takes 508). Two packs and larger
// blocks where the cache holds it all and there are enough for each multiprocessor: then it is the
// start of threads that takes the time (scale of 1e6 f32: 1.86 us, with one pack 2.1).
template <typename Out, typename Op, typename... In>
absl::Status MapPacks(const Call& call, Op op, Out* y, std::int64_t n, const In*... x) {
  if (!AreAligned(y, x...)) return Map(call, op, y, n, x...);
  if (n == 0) return absl::OkStatus();
  using Input = std::common_type_t<In...>;
  constexpr int kInputs = sizeof...(In);
  constexpr std::int64_t kEnough = 1 << 17, kHeld = (20 << 20) / kPackBytes;
  const std::int64_t packs = n / kMapLanes<Input, Out>;
  const Inputs<Input, kInputs> inputs{{x...}};
  return packs >= kEnough && packs <= kHeld
             ? LaunchPacks<2 * kMapThreads, 2, std::uint32_t>(call, op, y, inputs, n)
             : LaunchPacks<kMapThreads, 1, std::int64_t>(call, op, y, inputs, n);
}

}  // namespace gridclock::cuda

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUDA_MAP_CUH_
