// y = x / sum(|x|): every block adds its part, the whole grid waits, then every block divides. Such
// a grid must be on the device at once, which a cooperative launch sees to.
//
// gridclock: cooperative normalize x: f32[N] -> y: f32[N]
// gridclock:   scratch parts: f32[16]
// gridclock:   grid(16) block(128) params x, y, parts, n: int = N
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void normalize(const float* x, float* y, float* parts, int n) {
  __shared__ float sums[128];
  const int stride = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int i = first; i < n; i += stride) sum += fabsf(x[i]);
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) parts[blockIdx.x] = sums[0];
  cg::this_grid().sync();
  float total = 0.0f;
  for (int block = 0; block < gridDim.x; ++block) total += parts[block];
  for (int i = first; i < n; i += stride) y[i] = x[i] / total;
}
