// The one device of a test program: making it takes a second, and CUPTI serves one at a time.
#ifndef GRIDCLOCK_TESTS_GPU_GPU_FIXTURE_H_
#define GRIDCLOCK_TESTS_GPU_GPU_FIXTURE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/device/cuda/cuda_device.h"
#include "kernels/device/cuda/cuda_error.h"
#include "tests/gpu/test_kernels.h"

namespace gridclock {

inline bool HasGpu() {
  return !ListCudaDevices().devices.empty();
}

#define SKIP_WITHOUT_GPU() \
  if (!HasGpu()) GTEST_SKIP() << "no GPU here: " << ListCudaDevices().none

// Calibrated, made when first asked for. Never destroyed: the driver may be gone by then.
inline CudaDevice& TheGpu() {
  static CudaDevice* const device = [] {
    auto made = CudaDevice::Create({});
    if (!made.ok()) {
      std::fprintf(stderr, "no device: %s\n", made.status().ToString().c_str());
      std::abort();
    }
    return made->release();
  }();
  return *device;
}

inline cudaStream_t StreamOf(Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

inline auto Spin(Device& device, std::uint64_t ns) {
  return [&device, ns] { return CudaStatus(LaunchSpin(ns, StreamOf(device)), "spin"); };
}

inline bool Has(Device& device, Method method) {
  const auto methods = device.methods();
  return std::find(methods.begin(), methods.end(), method) != methods.end();
}

// The median of some launches, in nanoseconds; -1 and a failed test if one fails.
template <typename Launch>
double MedianBy(Device& device, Method method, const Launch& launch, int times) {
  std::vector<double> samples;
  device.NewLaunch();
  // The first launch may load the kernel.
  EXPECT_TRUE(device.Time(Method::kEventPair, launch).ok());
  for (int i = 0; i < times; ++i) {
    const auto timed = device.Time(method, launch);
    if (!timed.ok()) {
      ADD_FAILURE() << "method " << static_cast<int>(method) << ": " << timed.status();
      return -1;
    }
    samples.push_back(timed->duration_ns);
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_GPU_GPU_FIXTURE_H_
