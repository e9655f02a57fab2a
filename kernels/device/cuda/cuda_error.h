// What errors of the CUDA runtime mean to the device.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/api/cuda_error.h"

namespace gridclock {

// Of a wait for the device. Where it fails nobody knows whether the device still works on memory
// that is given to the next, so each error but those of a capture is a fault: at least
// DEVICE_FAULT.
absl::Status WaitStatus(cudaError_t error, absl::string_view what);

}  // namespace gridclock

#define GC_RETURN_IF_CUDA_ERROR(call, what) GC_RETURN_IF_ERROR(::gridclock::CudaStatus(call, what))

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
