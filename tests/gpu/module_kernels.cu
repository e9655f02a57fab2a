// Device code as clients send it.
#include <cstdio>

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void square(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}

extern "C" __global__ void add_in_place(float* a, const float* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += b[i];
}

// One block, all of x in shared memory.
extern "C" __global__ void reverse(const float* x, float* y, int n) {
  extern __shared__ float kept[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) kept[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = kept[n - 1 - i];
}

// Each block sums a part; after all have, each element of y is the sum of all parts.
extern "C" __global__ void sum_everywhere(const float* x, float* parts, float* y, int n) {
  float sum = 0;
  if (threadIdx.x == 0) {
    for (int i = blockIdx.x; i < n; i += gridDim.x) sum += x[i];
    parts[blockIdx.x] = sum;
  }
  cg::this_grid().sync();
  float total = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) total += parts[b];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    y[i] = total;
  }
}

// y of a block is the rank of its neighbour in the cluster, plus ten times the cluster's size.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
extern "C" __global__ void neighbours(float* y) {
  __shared__ int rank;
  cg::cluster_group cluster = cg::this_cluster();
  rank = static_cast<int>(cluster.block_rank());
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  y[blockIdx.x] = 10.0f * cluster.num_blocks() + *cluster.map_shared_rank(&rank, next);
  cluster.sync();
}
#endif

__constant__ float scale;
__device__ float offsets[4];
namespace deep {
__device__ int hidden;
}
extern "C" __global__ void affine(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = scale * x[i] + offsets[i % 4] + deep::hidden;
}

__device__ float counter;
extern "C" __global__ void counted(float* y) {
  y[0] = counter++;
}

extern "C" __global__ void say(const float* x, int n) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    for (int i = 0; i < n; ++i) printf("x[%d] is %g\n", i, x[i]);
  }
}

extern "C" __global__ void double_all(const float* const* a, float* const* c,
                                      const long long* sizes, int count) {
  for (int t = blockIdx.x; t < count; t += gridDim.x) {
    for (long long i = threadIdx.x; i < sizes[t]; i += blockDim.x) c[t][i] = 2 * a[t][i];
  }
}

struct Eight {
  const float* p[8];
};
// The first element of each tensor of the list.
extern "C" __global__ void firsts(Eight a, float* y) {
  const int i = threadIdx.x;
  y[i] = a.p[i] == nullptr ? -1.0f : *a.p[i];
}

extern "C" __global__ void every_type(float* y, int a, unsigned b, long long c,
                                      unsigned long long d, float e, double f, bool g,
                                      const void* h) {
  y[0] = a;
  y[1] = b;
  y[2] = c;
  y[3] = d;
  y[4] = e;
  y[5] = f;
  y[6] = g;
  y[7] = h == nullptr;
}

// y is how many words of shared memory still are what an earlier launch made them.
extern "C" __global__ void leftover(float* y) {
  constexpr unsigned kMark = 0x5EC2E755;
  __shared__ volatile unsigned kept[1024];
  int found = 0;
  for (int i = 0; i < 1024; ++i) {
    found += kept[i] == kMark;
    kept[i] = kMark;
  }
  y[0] = found;
}

extern "C" __global__ void illegal(float* y) {
  y[0] = 1;
  *reinterpret_cast<float*>(16) = 2;
}
