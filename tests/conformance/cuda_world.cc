#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/cuda_device.h"
#include "tests/conformance/harness.h"
#include "tests/conformance/world.h"

namespace gridclock {

const char* TestDeviceKind() {
  return "cuda";
}

absl::StatusOr<TestDevice> OpenTestDevice() {
  const CudaDevices found = ListCudaDevices();
  if (found.devices.empty()) {
    return TestDevice{nullptr, absl::StrCat("no GPU: ", found.none.message())};
  }
  GC_ASSIGN_OR_RETURN(auto device,
                      CudaDevice::Create({.bare = true, .exact_memory = !TestTool().empty()}));
  return TestDevice{std::move(device), ""};
}

}  // namespace gridclock
