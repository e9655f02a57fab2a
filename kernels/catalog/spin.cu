// Spin: busy for a given time. A kernel whose right duration is known, to test timing with.

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <chrono>

namespace gridclock {
namespace {

absl::Status Wait(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(call.binding->I64("ns"));
  while (Clock::now() < end) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(spin) {
  return {
      .words = "; ns: i64 = 20000 in [0, 600000000000]",
      .summary = "Busy for a given time",
      .formula = "t(end) - t(start) >= ns",
      .diagnostic = true,
      .cpu = {{"naive", "Reads the clock until the time is over", Wait}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

__device__ std::int64_t Nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void SpinKernel(std::int64_t ns) {
  const std::int64_t start = Nanoseconds();
  while (Nanoseconds() - start < ns) {
  }
}

absl::Status Wait(const Call& call) {
  return cuda::Launch(call, SpinKernel, {.grid = {1}, .block = {1}}, call.binding->I64("ns"));
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(spin) {
  return {{"naive", "One thread reads the GPU's nanosecond clock until the time is over", Wait}};
}

#endif  // __CUDACC__
