// What stands in for the CUDA device in a build without CUDA.
#include "base/status.h"
#include "kernels/device/cuda/cuda_device.h"

namespace gridclock {
namespace {

absl::Status NotBuilt() {
  return WithReason(absl::FailedPreconditionError(
                        "this program was built without CUDA: build where there is an nvcc, with "
                        "GRIDCLOCK_CUDA=ON"),
                    "NO_DEVICE");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Create(const CudaOptions&) {
  return NotBuilt();
}

CudaDevices ListCudaDevices() {
  return {.devices = {}, .none = NotBuilt()};
}

}  // namespace gridclock
