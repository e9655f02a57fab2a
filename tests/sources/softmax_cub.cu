// Softmax of rows, one block each, by CUB's block reduction.
//
// gridclock: softmax_kernel<256> x: f32[*, N] -> y: f32[*, N]
// gridclock:   grid(numel(x) / max(N, 1)) block(256) params x, y, n: int = N
#include <cub/block/block_reduce.cuh>

struct Larger {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

template <int THREADS>
__global__ void softmax_kernel(const float* x, float* y, int n) {
  using Reduce = cub::BlockReduce<float, THREADS>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float shared_max, shared_sum;
  x += static_cast<size_t>(blockIdx.x) * n;
  y += static_cast<size_t>(blockIdx.x) * n;

  float most = -INFINITY;
  for (int i = threadIdx.x; i < n; i += THREADS) most = fmaxf(most, x[i]);
  most = Reduce(storage).Reduce(most, Larger());
  if (threadIdx.x == 0) shared_max = most;
  __syncthreads();

  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += THREADS) sum += expf(x[i] - shared_max);
  sum = Reduce(storage).Sum(sum);
  if (threadIdx.x == 0) shared_sum = sum;
  __syncthreads();

  for (int i = threadIdx.x; i < n; i += THREADS) y[i] = expf(x[i] - shared_max) / shared_sum;
}
