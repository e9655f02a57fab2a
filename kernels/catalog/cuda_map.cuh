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

// One pack for each thread: the blocks that start as others end keep a GPU's memory busy. On an
// H200 two packs a thread cost 3 %, four 4 %, and a loop over a grid of resident blocks 8 to 14 %
// (square of 2^28 f32: 506, 522, 525 and 548 to 578 us; its copy takes 508). A loop that no thread
// runs twice costs as well where the whole takes 2 us: relu of 1e6 f32 2.2 us with it, 2.0 without.
template <typename Out, typename Op, typename In, int kInputs>
__global__ void __launch_bounds__(kMapThreads)
    MapPacksKernel(Op op, Out* y, Inputs<In, kInputs> x, std::int64_t n) {
  constexpr int kLanes = kMapLanes<In, Out>;
  using InPack = Pack<In, kLanes>;
  using OutPack = Pack<Out, kLanes>;
  constexpr auto kEach = std::make_integer_sequence<int, kInputs>();
  const std::int64_t packs = n / kLanes, i = GridThread();
  if (i < packs) [[likely]] {
    InPack in[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) in[k] = reinterpret_cast<const InPack*>(x.at[k])[i];
    OutPack out;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      [&]<int... k>(std::integer_sequence<int, k...>) {
        out.lane[lane] = Narrow<Out>(op(Widen(in[k].lane[lane])...));
      }
      (kEach);
    }
    reinterpret_cast<OutPack*>(y)[i] = out;
    return;
  }
  const std::int64_t rest = packs * kLanes + (i - packs);
  if (rest >= n) return;
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

// A thread for each pack and for each element of the rest. No tensor that a GPU holds has too many.
template <int kLanes>
Geometry GeometryOfPacks(std::int64_t n) {
  const std::int64_t threads = n / kLanes + n % kLanes;
  return {.grid = {(threads + kMapThreads - 1) / kMapThreads}, .block = {kMapThreads}};
}

// 16 bytes at a time; what lies askew in memory goes one element at a time.
template <typename Out, typename Op, typename... In>
absl::Status MapPacks(const Call& call, Op op, Out* y, std::int64_t n, const In*... x) {
  if (!AreAligned(y, x...)) return Map(call, op, y, n, x...);
  if (n == 0) return absl::OkStatus();
  using Input = std::common_type_t<In...>;
  constexpr int kInputs = sizeof...(In);
  return Launch(call, MapPacksKernel<Out, Op, Input, kInputs>,
                GeometryOfPacks<kMapLanes<Input, Out>>(n), op, y, Inputs<Input, kInputs>{{x...}},
                n);
}

}  // namespace gridclock::cuda

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUDA_MAP_CUH_
