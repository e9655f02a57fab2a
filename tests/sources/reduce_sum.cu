// The sum of a vector: warps add by shuffles, blocks by shared memory, the grid by an atomic. The
// sum begins at 0 because a launch before it says so: two launches are one kernel here.
//
// gridclock: reduce_sum x: f32[N] -> total: f32[]
// gridclock:   flops N
// gridclock: launch set_zero grid(1) block(1) params total
// gridclock: launch sum_kernel grid(min(ceil_div(N, 256), 1024)) block(256)
// gridclock:   params x, total, n: int = N
#include <cuda_runtime.h>

__global__ void set_zero(float* total) {
  *total = 0.0f;
}

__inline__ __device__ float warp_sum(float value) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, offset);
  }
  return value;
}

__global__ void sum_kernel(const float* x, float* total, int n) {
  __shared__ float sums[32];
  float value = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    value += x[i];
  }
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  value = warp_sum(value);
  if (lane == 0) sums[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = lane < blockDim.x / warpSize ? sums[lane] : 0.0f;
    value = warp_sum(value);
    if (lane == 0) atomicAdd(total, value);
  }
}
