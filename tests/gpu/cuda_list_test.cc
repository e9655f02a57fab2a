// Runs everywhere: a machine without a driver, and a build without CUDA, must say so.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cuda/cuda_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

TEST(CudaDevices, AreListedOrItIsSaidWhyThereAreNone) {
  const CudaDevices there = ListCudaDevices();
  EXPECT_EQ(there.devices.empty(), !there.none.ok()) << there.none;
  for (const CudaDeviceFacts& device : there.devices) {
    EXPECT_THAT(device.uuid, Not(IsEmpty()));
    EXPECT_THAT(device.model, Not(IsEmpty()));
    EXPECT_GT(device.sm, 0);
  }
  if (there.devices.empty()) {
    EXPECT_THAT(std::string(there.none.message()), Not(IsEmpty()));
  }
}

TEST(CudaDevices, OneThatIsNotThereIsRefused) {
  const auto device = CudaDevice::Create({.ordinal = 99});
  EXPECT_THAT(device.status(), ReasonIs("NO_DEVICE"));
  EXPECT_EQ(device.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace gridclock
