// The one place where errors of the CUDA runtime become statuses.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gridclock {

// True for errors after which the process can never use the device again: it must end.
bool IsSticky(cudaError_t error);

// True for what a stream that is being captured into a graph cannot do.
bool IsCaptureError(cudaError_t error);

// OK for cudaSuccess. A fault of a kernel is FAILED_PRECONDITION with reason KERNEL_FAULT, a fault
// of the device UNAVAILABLE with reason DEVICE_FAULT, too little memory RESOURCE_EXHAUSTED with
// reason DEVICE_MEMORY, a launch beyond the device's limits INTERNAL with reason LAUNCH_SHAPE:
// every shape comes from a variant, which the call's words said would take it. `what` says what was
// tried: "copy in".
absl::Status CudaStatus(cudaError_t error, absl::string_view what);

// Of a wait for the device. Where it fails nobody knows whether the device still works on memory
// that is given to the next, so each error but those of a capture is a fault: at least
// DEVICE_FAULT.
absl::Status WaitStatus(cudaError_t error, absl::string_view what);

}  // namespace gridclock

#define GC_RETURN_IF_CUDA_ERROR(call, what) GC_RETURN_IF_ERROR(::gridclock::CudaStatus(call, what))

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_CUDA_ERROR_H_
