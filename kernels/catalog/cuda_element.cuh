// Element types of the floating kernels on a GPU, and 16 bytes of them at a time.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CUDA_ELEMENT_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_CUDA_ELEMENT_CUH_

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "absl/status/status.h"
#include "kernels/api/kernel.h"
#include "kernels/catalog/float_types.h"

namespace gridclock::cuda {

// What elements of T are computed in: 16 bits are too few for any sum.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

__device__ inline double Widen(double x) {
  return x;
}
__device__ inline float Widen(float x) {
  return x;
}
__device__ inline float Widen(__half x) {
  return __half2float(x);
}
__device__ inline float Widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

// Rounds to the nearest, ties to even.
template <typename T>
__device__ T Narrow(Wide<T> x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

template <typename W>
__device__ constexpr W Infinity() {
  return std::numeric_limits<W>::infinity();
}

template <typename Body>
absl::Status WithFloat(DType dtype, Body body) {
  return WithFloatOf<__half, __nv_bfloat16>(dtype, body);
}

// The widest load that every GPU has.
inline constexpr int kPackBytes = 16;

// Elements that one instruction loads or stores.
template <typename T, int kLanes = kPackBytes / int{sizeof(T)}>
struct alignas(sizeof(T) * kLanes) Pack {
  static constexpr int kCount = kLanes;
  T lane[kLanes];
};

template <typename T>
__device__ Pack<T> LoadPack(const T* p) {
  return *reinterpret_cast<const Pack<T>*>(p);
}
// In so many words: lanes that come from different places are otherwise stored one by one, as each
// store might be meant for what the next lane is read from.
template <typename T>
__device__ void StorePack(T* p, const Pack<T>& pack) {
  uint4 whole;
  memcpy(&whole, &pack, sizeof(whole));
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
               "r"(whole.x), "r"(whole.y), "r"(whole.z), "r"(whole.w)
               : "memory");
}

template <typename... P>
bool AreAligned(const P*... p) {
  return ((reinterpret_cast<std::uintptr_t>(p) % kPackBytes == 0) && ...);
}

// The number of this thread in the grid, and how many there are, along x.
__device__ inline std::int64_t GridThread() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t GridThreads() {
  return std::int64_t{gridDim.x} * blockDim.x;
}

}  // namespace gridclock::cuda

#endif  // GRIDCLOCK_KERNELS_CATALOG_CUDA_ELEMENT_CUH_
