#include "absl/strings/str_cat.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/worker/cpu_level.h"
#include "tests/conformance/world.h"

namespace gridclock {

const char* TestDeviceKind() {
  return "cpu";
}

absl::StatusOr<TestDevice> OpenTestDevice() {
  const absl::string_view level = BuiltInLevel();
  if (ChooseLevel(FeaturesHere(), std::string(level.substr(level.rfind('-') + 1))) == nullptr) {
    return TestDevice{nullptr, absl::StrCat("this machine has no ", level)};
  }
  // More threads than this machine may have, so that work is cut into parts everywhere.
  constexpr int kThreads = 4;
  GC_ASSIGN_OR_RETURN(
      auto device,
      CpuDevice::Create({.threads = kThreads, .level = std::string(level), .calibrate = false}));
  return TestDevice{std::move(device), ""};
}

}  // namespace gridclock
