// c = a b by square tiles in dynamic shared memory, whose side is a parameter.
//
// gridclock: matmul_tiled a: f32[M, K], b: f32[K, N] -> c: f32[M, N]; tile: i64 = 32 in {8, 16, 32}
// gridclock:   flops 2*M*N*K
// gridclock:   grid(ceil_div(N, tile), ceil_div(M, tile)) block(tile, tile) shared 2*tile*tile*4
// gridclock:   params a, b, c, m: int = M, n: int = N, k: int = K
#include <stdio.h>

__global__ void matmul_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
  extern __shared__ float tiles[];
  const int tile = blockDim.x;
  float* tile_a = tiles;
  float* tile_b = tiles + tile * tile;
  const int row = blockIdx.y * tile + threadIdx.y;
  const int col = blockIdx.x * tile + threadIdx.x;
  float sum = 0.0f;
  for (int at = 0; at < k; at += tile) {
    const int ak = at + threadIdx.x, bk = at + threadIdx.y;
    tile_a[threadIdx.y * tile + threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0.0f;
    tile_b[threadIdx.y * tile + threadIdx.x] = bk < k && col < n ? b[bk * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < tile; ++i) {
      sum += tile_a[threadIdx.y * tile + i] * tile_b[i * tile + threadIdx.x];
    }
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
