#include "client/cli/findings.h"

#include <gmock/gmock.h>

namespace gridclock::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using Devices = std::vector<v1::Device>;

v1::Device Device(const char* kind, v1::Device::State state = v1::Device::READY) {
  v1::Device device;
  device.set_kind(kind);
  device.set_state(state);
  return device;
}

TEST(FindingsTest, OfAServerOfTheCpuAlone) {
  EXPECT_THAT(
      PartsOf({}, Devices{Device("cpu", v1::Device::BUSY)}),
      ElementsAre(Finding{true, "workers", "1 of 1 up, started again 0 times"},
                  Finding{true, "GPU", "none is served: kernels run on the CPU"},
                  Finding{true, "compiler", "off: code of clients is not taken (--allow-submit)"}));
}

TEST(FindingsTest, AWorkerThatIsDownIsMissing) {
  Devices devices = {Device("cpu"), Device("cuda", v1::Device::DEAD)};
  devices[1].set_restarts(3);
  EXPECT_THAT(PartsOf({}, devices),
              Contains(Finding{false, "workers",
                               "missing: calls for their devices wait (1 of 2 up, started again 3 "
                               "times)"}));
}

TEST(FindingsTest, OfAGpuEachLibraryOrWhatItsLackMeans) {
  Devices devices = {Device("cuda")};
  EXPECT_THAT(
      PartsOf({}, devices),
      Contains(Finding{false, "CUPTI", "missing: no device_time (its worker has not said yet)"}));
  devices[0].set_cuda("13.0");
  v1::Device::MethodFacts* method = devices[0].add_methods();
  method->set_method(v1::DEVICE_TIME);
  method->set_missing("no libcupti.so.13");
  EXPECT_THAT(
      PartsOf({}, devices),
      ElementsAre(
          testing::_, Finding{true, "CUDA", "13.0"},
          Finding{false, "NVML", "missing: clocks, throttling and others on a GPU are not seen"},
          Finding{false, "CUPTI", "missing: no device_time (no libcupti.so.13)"}, testing::_));
  devices[0].set_driver("580.65.06");
  method->clear_missing();
  EXPECT_THAT(PartsOf({}, devices), Contains(Finding{true, "NVML", "driver 580.65.06"}));
  EXPECT_THAT(PartsOf({}, devices), Contains(Finding{true, "CUPTI", "there"}));
}

TEST(FindingsTest, OfACompilerItsToolsOrWhatTheirLackMeans) {
  v1::ServerInfo info;
  v1::Compiler& compiler = *info.mutable_compiler();
  EXPECT_THAT(PartsOf(info, {}),
              Contains(Finding{false, "compiler", "missing: nothing is compiled (not ready)"}));
  compiler.set_ready(true);
  compiler.set_sandbox("seccomp");
  compiler.set_toolchain("NVRTC 13.0");
  compiler.set_no_sass("no nvdisasm");
  const auto parts = PartsOf(info, {});
  EXPECT_THAT(parts, Contains(Finding{true, "compiler", "sandbox seccomp"}));
  EXPECT_THAT(parts, Contains(Finding{true, "NVRTC", "NVRTC 13.0"}));
  EXPECT_THAT(parts, Contains(Finding{true, "ptxas", "there"}));
  EXPECT_THAT(parts, Contains(Finding{true, "nvdisasm",
                                      "missing: machine code is not shown (no nvdisasm)"}));
}

TEST(FindingsTest, WhatIsMissingIsNotOkThoughAllElseWorksWithoutIt) {
  EXPECT_EQ(StatusOf({true, "ptxas", "there"}), "ok");
  EXPECT_EQ(StatusOf({true, "nvdisasm", "missing: machine code is not shown"}), "without");
  EXPECT_EQ(StatusOf({false, "ptxas", "missing: PTX is not assembled"}), "no");
}

TEST(FindingsTest, OfEachDeviceWhatHoldsSubmittedCodeThere) {
  v1::ServerInfo info;
  info.mutable_compiler();
  Devices devices = {Device("cpu"), Device("cuda")};
  devices[0].set_name("cpu");
  devices[1].set_name("cuda:0");
  devices[1].set_sandbox("landlock 7, seccomp");
  const auto parts = PartsOf(info, devices);
  EXPECT_THAT(parts, Contains(Finding{false, "guests on cpu",
                                      "missing: submitted code does not run there (none has "
                                      "started yet)"}));
  EXPECT_THAT(parts, Contains(Finding{true, "guests on cuda:0", "sandbox landlock 7, seccomp"}));
  devices[1].set_pageable_access(true);
  EXPECT_THAT(PartsOf(info, devices),
              Contains(Finding{true, "guests on cuda:0",
                               "sandbox landlock 7, seccomp; kernels reach all host memory of "
                               "their process, and could forge their times (docs/security.md names "
                               "the driver's setting that ends it, uvm_disable_hmm=1)"}));
  EXPECT_EQ(PartsOf({}, devices).size(), 5U);  // What is off needs no walls.
}

TEST(FindingsTest, AServerStartsUntilEachOfItsProcessesToldOfItself) {
  v1::ServerInfo info;
  Devices devices = {Device("cpu", v1::Device::STARTING)};
  EXPECT_TRUE(IsStarting(info, devices));
  devices[0].set_state(v1::Device::QUARANTINED);
  EXPECT_FALSE(IsStarting(info, devices));
  info.mutable_compiler();
  devices[0].set_sandbox("seccomp");
  EXPECT_TRUE(IsStarting(info, devices));
  info.mutable_compiler()->set_ready(true);
  EXPECT_FALSE(IsStarting(info, devices));
  devices[0].clear_sandbox();
  EXPECT_TRUE(IsStarting(info, devices));
}

}  // namespace
}  // namespace gridclock::cli
