#include "kernels/device/cuda/cuda_error.h"

namespace gridclock {

absl::Status WaitStatus(cudaError_t error, absl::string_view what) {
  const absl::Status status = CudaStatus(error, what);
  if (status.ok() || IsSticky(error) || IsCaptureError(error)) return status;
  return WithReason(absl::UnavailableError(status.message()), "DEVICE_FAULT");
}

}  // namespace gridclock
