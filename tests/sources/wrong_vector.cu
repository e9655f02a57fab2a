// The first way in which a kernel over several tensors fails: a container of the host in device
// code.
//
// gridclock: add_all a: f32[*]... -> c: f32[*]
// gridclock:   grid(1) block(256) params table(a), c, n: int = numel(c)
#include <vector>

__global__ void add_all(std::vector<float*> a, float* c, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    c[i] = 0.0f;
    for (size_t t = 0; t < a.size(); ++t) c[i] += a[t][i];
  }
}
