#include "kernels/catalog/cuda_launch.cuh"
#include "tests/unit/device/launch_status.h"

namespace gridclock {

absl::Status LaunchStatus(cudaError_t error) {
  return cuda::ToStatus(error, "launch");
}

}  // namespace gridclock
