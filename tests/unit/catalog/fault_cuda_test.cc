// Each fault of a GPU is known for what it is, and ends the device for its process alone. Every one
// has a process of its own.
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cuda/cuda_device.h"

namespace gridclock {
namespace {

absl::Status LaunchFault(Device& device, const std::string& kind) {
  static const Registry registry = *Registry::Create(BuiltInKernels());
  const RegisteredKernel& kernel = *registry.Find("fault");
  GC_ASSIGN_OR_RETURN(const Binding binding,
                      Bind(kernel.spec, {}, {{.name = "kind", .value = kind}}));
  GC_RETURN_IF_ERROR(kernel.def.cuda.front().launch({.binding = &binding,
                                                     .inputs = {},
                                                     .outputs = {},
                                                     .scratch = {},
                                                     .threads = device.threads(),
                                                     .stream = device.stream()}));
  return device.Synchronize();
}

// Says on stderr what came of it, and ends the process.
[[noreturn]] void Report(const std::string& kind) {
  const auto device = CudaDevice::Create({.bare = true});
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    std::exit(1);
  }
  const absl::Status status = LaunchFault(**device, kind);
  const absl::Status next = LaunchFault(**device, "none");
  std::fprintf(stderr, "%s %s, %s, the next %s\n", std::string(status.message()).c_str(),
               DetailsOf(status).reason.c_str(), (*device)->poisoned() ? "poisoned" : "sound",
               next.ok() ? "ran" : "failed");
  std::_Exit(0);  // No destructor has anything to say to a device that is lost.
}

class GpuFault : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const CudaDevices found = ListCudaDevices();
    if (found.devices.empty()) GTEST_SKIP() << "no GPU: " << found.none.message();
  }
  static void Expect(const char* kind, const char* report) {
    EXPECT_EXIT(Report(kind), testing::ExitedWithCode(0), report);
  }
};

TEST_F(GpuFault, NoneIsSound) {
  Expect("none", ", sound, the next ran");
}

TEST_F(GpuFault, IllegalAddress) {
  Expect("illegal_address", "cudaErrorIllegalAddress.*KERNEL_FAULT, poisoned, the next failed");
}

TEST_F(GpuFault, MisalignedAddress) {
  Expect("misaligned", "cudaErrorMisalignedAddress.*KERNEL_FAULT, poisoned, the next failed");
}

TEST_F(GpuFault, FailedAssertion) {
  Expect("assert", "cudaErrorAssert.*KERNEL_FAULT, poisoned, the next failed");
}

TEST_F(GpuFault, Trap) {
  Expect("trap", "cudaErrorLaunchFailure.*KERNEL_FAULT, poisoned, the next failed");
}

TEST_F(GpuFault, MemoryThatIsFullHarmsNothing) {
  Expect("allocate", "cudaErrorMemoryAllocation.*, sound, the next ran");
}

}  // namespace
}  // namespace gridclock
