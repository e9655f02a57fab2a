// c[i] = a[i] + b[i] for each tensor of three lists, found by tables of pointers: one block row for
// each tensor.
//
// gridclock: add_lists a: f32[*]..., b: f32[*]... -> c: f32[*]...
// gridclock:   grid(8, count(a)) block(256) params table(a), table(b), table(c), sizes(a)
__global__ void add_lists(const float* const* a, const float* const* b, float* const* c,
                          const long long* sizes) {
  const int tensor = blockIdx.y;
  const long long n = sizes[tensor];
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    c[tensor][i] = a[tensor][i] + b[tensor][i];
  }
}
