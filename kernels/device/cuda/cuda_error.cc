#include "kernels/device/cuda/cuda_error.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

// What a kernel did; by the runtime's own words the process must be relaunched.
bool IsKernelFault(cudaError_t error) {
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
bool IsDeviceFault(cudaError_t error) {
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

struct Meaning {
  absl::StatusCode code = absl::StatusCode::kInternal;
  const char* reason = "";
};

Meaning MeaningOf(cudaError_t error) {
  using enum absl::StatusCode;
  if (IsKernelFault(error)) return {kFailedPrecondition, "KERNEL_FAULT"};
  if (IsDeviceFault(error)) return {kUnavailable, "DEVICE_FAULT"};
  if (IsCaptureError(error)) return {kFailedPrecondition, "NOT_CAPTURABLE"};
  switch (error) {
    case cudaErrorMemoryAllocation:
      return {kResourceExhausted, "DEVICE_MEMORY"};
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge:
    case cudaErrorInvalidClusterSize:
      return {kInternal, "LAUNCH_SHAPE"};
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
      return {kFailedPrecondition, "NO_KERNEL_IMAGE"};
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
      return {kFailedPrecondition, "NO_DEVICE"};
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsMaxClientsReached:
    case cudaErrorMpsMaxConnectionsReached:
      return {kUnavailable, "DEVICE_UNAVAILABLE"};
    default:
      return {};
  }
}

}  // namespace

bool IsSticky(cudaError_t error) {
  return IsKernelFault(error) || IsDeviceFault(error);
}

bool IsCaptureError(cudaError_t error) {
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

absl::Status CudaStatus(cudaError_t error, absl::string_view what) {
  if (error == cudaSuccess) return absl::OkStatus();
  const Meaning meaning = MeaningOf(error);
  const absl::Status status(
      meaning.code, absl::StrCat(what, ": ", cudaGetErrorName(error), " (", static_cast<int>(error),
                                 "): ", cudaGetErrorString(error)));
  return *meaning.reason == '\0' ? status : WithReason(status, meaning.reason);
}

absl::Status WaitStatus(cudaError_t error, absl::string_view what) {
  const absl::Status status = CudaStatus(error, what);
  if (status.ok() || IsSticky(error) || IsCaptureError(error)) return status;
  return WithReason(absl::UnavailableError(status.message()), "DEVICE_FAULT");
}

}  // namespace gridclock
