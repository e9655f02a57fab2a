// Square, with a mistake that no value shows: compute-sanitizer must, or what else it does not
// report is worth nothing (tests/gpu/test.py). In test builds alone.
//
// On a GPU:
//   past_the_end     also reads the element behind the last one of x
//   before_written   also reads its scratch, which nothing wrote
//   raced            also reads what another warp writes to shared memory, no barrier between
//   unmasked         has a thread at a barrier of its warp that is not for it

#include "kernels/api/kernel.h"

#ifdef __CUDACC__
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

__global__ void SquareKernel(const float* x, float* y, std::int64_t n, const float* misread) {
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * x[i];
  // Volatile, or the compiler would leave out what nobody uses.
  if (threadIdx.x == 0) static_cast<void>(*static_cast<const volatile float*>(misread));
}

absl::Status Square(const Call& call, const float* misread) {
  return cuda::Launch(call, SquareKernel, {.grid = {1}, .block = {256}}, call.In<float>(0),
                      call.Out<float>(0), Elements(call.InShape(0)), misread);
}

absl::Status PastTheEnd(const Call& call) {
  return Square(call, call.In<float>(0) + Elements(call.InShape(0)));
}

absl::Status BeforeWritten(const Call& call) {
  return Square(call, static_cast<const float*>(call.scratch[0].data[0]));
}

__global__ void RacedKernel(const float* x, float* y, std::int64_t n) {
  __shared__ volatile float squares[256];
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * x[i];
  squares[threadIdx.x] = static_cast<float>(threadIdx.x);
  static_cast<void>(squares[(threadIdx.x + 32) % blockDim.x]);
}

__global__ void UnmaskedKernel(const float* x, float* y, std::int64_t n) {
  __shared__ volatile float squares[32];
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] * x[i];
  if (threadIdx.x > 16) return;
  squares[threadIdx.x] = 0;
  __syncwarp(0x0000FFFF);  // Of the threads 0 to 15.
  static_cast<void>(squares[16 - threadIdx.x]);
}

absl::Status Run(const Call& call, void (*kernel)(const float*, float*, std::int64_t)) {
  return cuda::Launch(call, kernel, {.grid = {1}, .block = {256}}, call.In<float>(0),
                      call.Out<float>(0), Elements(call.InShape(0)));
}

absl::Status Raced(const Call& call) {
  return Run(call, RacedKernel);
}

absl::Status Unmasked(const Call& call) {
  return Run(call, UnmaskedKernel);
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(misread) {
  return {{"past_the_end", "Reads one element too many", PastTheEnd},
          {"before_written", "Reads what nothing wrote", BeforeWritten, "scratch word: f32[1]"},
          {"raced", "Reads what another warp writes", Raced},
          {"unmasked", "Has a thread at a barrier that is not for it", Unmasked}};
}

#else  // The CPU.
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

void Expected(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = in(0, unit) * in(0, unit);
}

absl::Status Naive(const Call& call) {
  const std::int64_t n = Elements(call.InShape(0));
  for (std::int64_t i = 0; i < n; ++i) {
    call.Out<float>(0)[i] = call.In<float>(0)[i] * call.In<float>(0)[i];
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(misread) {
  return {
      .words = "x: T[*] -> y: T[*] where T in {f32}",
      .summary = "The square of each element",
      .formula = "y = x^2",
      .reference = EachElement(Expected, Roundings::kOnce),
      .cpu = {{"naive", "One loop, one thread", Naive}},
  };
}

#endif  // __CUDACC__
