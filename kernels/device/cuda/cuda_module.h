// A cubin on a GPU.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_

#include <cstddef>
#include <memory>
#include <span>

#include <cuda_runtime_api.h>

#include "absl/status/statusor.h"
#include "kernels/device/module.h"

namespace gridclock {

// Of the device `ordinal`, which is current; launches go to `stream`.
absl::StatusOr<std::unique_ptr<DeviceModule>> LoadCudaModule(std::span<const std::byte> cubin,
                                                             int ordinal, cudaStream_t stream);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_MODULE_H_
