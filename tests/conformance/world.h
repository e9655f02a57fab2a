// The device that a program of the suite runs on. Each program links one file that defines this.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_WORLD_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"

namespace gridclock {

struct TestDevice {
  std::unique_ptr<Device> device;  // Null where this machine has none.
  std::string missing;             // Why it has none.
};

const char* TestDeviceKind();  // "cpu", "cuda"
absl::StatusOr<TestDevice> OpenTestDevice();
// True if all `bytes` at `data`, which lies on the device, repeat the first `period` of them, which
// are fewer.
absl::StatusOr<bool> Repeats(Device& device, const void* data, std::uint64_t bytes,
                             std::uint64_t period);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_WORLD_H_
