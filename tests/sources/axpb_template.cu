// y = a x + b for any element type, four elements a thread.
//
// gridclock: axpb<float, 4> x: f32[*] -> y: f32[*]; a: f64 = 2, b: f64 = 0
// gridclock:   grid(ceil_div(numel(x), 4*256)) block(256)
// gridclock:   params x, y, a: float = a, b: float = b, n: int64 = numel(x)
#include <cstdint>

template <typename T, int PER_THREAD>
__global__ void axpb(const T* x, T* y, T a, T b, int64_t n) {
  const int64_t first = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) * PER_THREAD;
#pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) {
    if (first + i < n) y[first + i] = a * x[first + i] + b;
  }
}
