// What the driver says of a device.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_FACTS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_FACTS_H_

#include <string>

#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"
#include "kernels/device/cuda/cuda_device.h"

namespace gridclock {

absl::StatusOr<CudaDeviceFacts> ReadFacts(int ordinal);

// The ordinal of the device that the options mean; FAILED_PRECONDITION with reason NO_DEVICE, and
// what there is, if there is none.
absl::StatusOr<int> FindDevice(const CudaOptions& options);

// 0 where the device does not tell.
int Attribute(cudaDeviceAttr attribute, int ordinal);

// "13.0": the newest CUDA that the driver knows; empty without a driver.
std::string DriverCuda();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_FACTS_H_
