#include "kernels/catalog/cuda_launch.cuh"
#include "tests/gpu/early_kernels.h"

namespace gridclock {
namespace {

__device__ std::uint64_t Now() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

#ifndef GRIDCLOCK_OLDER_CODE
__global__ void LateWriteKernel(volatile Early* early, std::uint64_t most_ns) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  const std::uint64_t start = Now();
  while (early->started_ns == 0 && Now() - start < most_ns) {
  }
  constexpr std::uint64_t kLate = 100'000;  // A reader that does not wait has read by then.
  const std::uint64_t started = Now();
  while (Now() - started < kLate) {
  }
  early->written = 1;
  early->ended_ns = Now();
}
#endif

__global__ void EarlyReadKernel(volatile Early* early) {
  early->started_ns = Now();
  cuda::WaitForKernelBefore();
  early->read = early->written;
}

}  // namespace

#ifdef GRIDCLOCK_OLDER_CODE
absl::Status LaunchEarlyReadOfOlderCode(const Call& call, Early* early) {
  return cuda::Launch(call, EarlyReadKernel, {.early = true}, early);
}
#else
absl::Status LaunchLateWrite(const Call& call, Early* early, std::uint64_t most_ns) {
  return cuda::Launch(call, LateWriteKernel, {}, early, most_ns);
}

absl::Status LaunchEarlyRead(const Call& call, Early* early) {
  return cuda::Launch(call, EarlyReadKernel, {.early = true}, early);
}
#endif

}  // namespace gridclock
