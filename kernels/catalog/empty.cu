// Empty: does nothing. What it costs is what any launch costs; timings are read beside it.

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.

namespace gridclock {
namespace {

absl::Status Nothing(const Call&) {
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(empty) {
  return {
      .words = "",
      .summary = "Nothing: the cost of a launch",
      .formula = "",
      .diagnostic = true,
      .cpu = {{"naive", "Returns at once", Nothing}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

__global__ void EmptyKernel() {}

absl::Status Nothing(const Call& call) {
  return cuda::Launch(call, EmptyKernel, {.grid = {1}, .block = {1}});
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(empty) {
  return {{"naive", "One thread that returns at once", Nothing}};
}

#endif  // __CUDACC__
