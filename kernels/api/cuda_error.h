// The one place where errors of the CUDA runtime become statuses: of a kernel's launch, and of all
// that the device does beside it.
#ifndef GRIDCLOCK_KERNELS_API_CUDA_ERROR_H_
#define GRIDCLOCK_KERNELS_API_CUDA_ERROR_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"

namespace gridclock {

// What a kernel did; by the runtime's own words the process must be relaunched.
inline bool IsKernelFault(cudaError_t error) {
  switch (error) {
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
      return true;
    default:
      return false;
  }
}

// What no kernel did: the hardware, the link to it, or the context is gone.
inline bool IsDeviceFault(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorMpsClientTerminated:
    case cudaErrorMpsRpcFailure:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

// True for errors after which the process can never use the device again: it must end.
inline bool IsSticky(cudaError_t error) {
  return IsKernelFault(error) || IsDeviceFault(error);
}

// True for what a stream that is being captured into a graph cannot do.
inline bool IsCaptureError(cudaError_t error) {
  switch (error) {
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread:
      return true;
    default:
      return false;
  }
}

// Whether the code that was to run has none for this GPU.
inline bool LacksImage(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
      return true;
    default:
      return false;
  }
}

struct CudaMeaning {
  absl::StatusCode code = absl::StatusCode::kInternal;
  const char* reason = "";
};

inline CudaMeaning MeaningOf(cudaError_t error) {
  using Code = absl::StatusCode;
  if (IsKernelFault(error)) return {Code::kFailedPrecondition, "KERNEL_FAULT"};
  if (IsDeviceFault(error)) return {Code::kUnavailable, "DEVICE_FAULT"};
  if (IsCaptureError(error)) return {Code::kFailedPrecondition, "NOT_CAPTURABLE"};
  if (LacksImage(error)) return {Code::kFailedPrecondition, "NO_KERNEL_IMAGE"};
  switch (error) {
    case cudaErrorMemoryAllocation:
      return {Code::kResourceExhausted, "DEVICE_MEMORY"};
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorInvalidClusterSize:
      return {Code::kInternal, "LAUNCH_SHAPE"};
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return {Code::kFailedPrecondition, "NO_DEVICE"};
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return {Code::kUnavailable, "DEVICE_UNAVAILABLE"};
    default:
      return {};
  }
}

// OK for cudaSuccess. A fault of a kernel is FAILED_PRECONDITION with reason KERNEL_FAULT, a fault
// of the device UNAVAILABLE with reason DEVICE_FAULT, too little memory RESOURCE_EXHAUSTED with
// reason DEVICE_MEMORY, a launch beyond the device's limits INTERNAL with reason LAUNCH_SHAPE:
// every shape comes from a variant, which the call's words said would take it. `what` says what was
// tried: "copy in"; `hint` comes behind the runtime's own words.
inline absl::Status CudaStatus(cudaError_t error, absl::string_view what,
                               absl::string_view hint = "") {
  if (error == cudaSuccess) return absl::OkStatus();
  const CudaMeaning meaning = MeaningOf(error);
  const absl::Status status(
      meaning.code, absl::StrCat(what, ": ", cudaGetErrorName(error), " (", static_cast<int>(error),
                                 "): ", cudaGetErrorString(error), hint));
  return *meaning.reason == '\0' ? status : WithReason(status, meaning.reason);
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_API_CUDA_ERROR_H_
