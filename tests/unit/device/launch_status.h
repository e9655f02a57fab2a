// What the catalogue makes of an error of the CUDA runtime: its header is for nvcc alone.
#ifndef GRIDCLOCK_TESTS_UNIT_DEVICE_LAUNCH_STATUS_H_
#define GRIDCLOCK_TESTS_UNIT_DEVICE_LAUNCH_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"

namespace gridclock {

absl::Status LaunchStatus(cudaError_t error);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_DEVICE_LAUNCH_STATUS_H_
