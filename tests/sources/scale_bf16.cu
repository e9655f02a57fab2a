// y = factor x in bfloat16, computed in float. The factor is a constant of the device.
//
// gridclock: scale_bf16 x: bf16[*] -> y: bf16[*]; factor: f64 = 0.5
// gridclock:   grid(ceil_div(numel(x), 128)) block(128) params x, y, n: unsigned = numel(x)
// gridclock: global scale_factor = factor
#include <cuda_bf16.h>

__constant__ float scale_factor;

__global__ void scale_bf16(const __nv_bfloat16* x, __nv_bfloat16* y, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(__bfloat162float(x[i]) * scale_factor);
}
