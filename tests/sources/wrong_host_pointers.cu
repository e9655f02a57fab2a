// The second: a table whose pointers are of the host. Here the table holds addresses that a host
// would have; on the device nothing lies there.
//
// gridclock: add_all addresses: u64[T] -> c: f32[n]; n: i64 = 256 in [1, 65536]
// gridclock:   grid(1) block(256) params addresses, c, tensors: int = T, n: int = n
__global__ void add_all(const float* const* a, float* c, int tensors, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    c[i] = 0.0f;
    for (int t = 0; t < tensors; ++t) c[i] += a[t][i];
  }
}
