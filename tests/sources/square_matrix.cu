// Squares a matrix on a grid of 16x16 blocks: a first kernel in the shape that courses have it,
// with its wrapper for torch and a program around it.
//
// gridclock: square_matrix_kernel x: f32[H, W] -> y: f32[H, W]
// gridclock:   grid(ceil_div(W, 16), ceil_div(H, 16)) block(16, 16)
// gridclock:   params x, y, width: int = W, height: int = H
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <torch/extension.h>

#define CHECK(call)                                                                  \
  do {                                                                               \
    cudaError_t error = (call);                                                      \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

__global__ void square_matrix_kernel(const float* matrix, float* result, int width, int height) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;

  if (row < height && col < width) {
    int idx = row * width + col;
    result[idx] = matrix[idx] * matrix[idx];
  }
}

torch::Tensor square_matrix(torch::Tensor matrix) {
  const auto height = matrix.size(0);
  const auto width = matrix.size(1);

  auto result = torch::empty_like(matrix);

  dim3 threads_per_block(16, 16);
  dim3 number_of_blocks((width + threads_per_block.x - 1) / threads_per_block.x,
                        (height + threads_per_block.y - 1) / threads_per_block.y);

  square_matrix_kernel<<<number_of_blocks, threads_per_block>>>(
      matrix.data_ptr<float>(), result.data_ptr<float>(), width, height);
  return result;
}

int main() {
  const int height = 2, width = 3;
  std::vector<float> host = {1, 2, 3, 4, 5, 6};
  float *in = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&out, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  square_matrix_kernel<<<dim3(1, 1), dim3(16, 16)>>>(in, out, width, height);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (float value : host) printf("%g ", value);
  printf("\n");
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  return 0;
}
