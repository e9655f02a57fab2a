#include "kernels/device/cuda/nvml.h"

#include <memory>
#include <string>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "kernels/device/cuda/gpu_monitor.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/device/fake_nvml.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::SizeIs;

class NvmlTest : public ::testing::Test {
 protected:
  NvmlTest() {
    void* library = dlopen(FAKE_NVML, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    fake_ = reinterpret_cast<decltype(&TheFakeNvml)>(dlsym(library, "TheFakeNvml"))();
    *fake_ = FakeNvml();
  }
  std::unique_ptr<Nvml> Open() {
    auto nvml = OpenNvml("GPU-1", {FAKE_NVML});
    EXPECT_THAT(nvml, IsOk());
    return *std::move(nvml);
  }

  FakeNvml* fake_ = nullptr;
};

TEST_F(NvmlTest, ReadsWhatTheDeviceTells) {
  fake_->clocks[1] = 1755;
  fake_->clocks[2] = 3201;
  fake_->milliwatts = 412'500;
  fake_->clock_reasons = kClockPowerCap;
  fake_->processes = {100, 200};
  fake_->memory_used = 700;

  const NvmlReading reading = Open()->Read();

  EXPECT_THAT(reading.sm_clock_hz, Optional(1755e6));
  EXPECT_THAT(reading.memory_clock_hz, Optional(3201e6));
  EXPECT_THAT(reading.power_watts, Optional(412.5));
  EXPECT_THAT(reading.temperature_celsius, Optional(41));
  EXPECT_THAT(reading.clock_reasons, Optional(kClockPowerCap));
  EXPECT_THAT(reading.memory_used_bytes, Optional(700));
  EXPECT_THAT(reading.memory_free_bytes, Optional(300));
  EXPECT_THAT(reading.power_violation_ns, Optional(700));
  EXPECT_THAT(reading.thermal_violation_ns, Optional(900));
  EXPECT_THAT(reading.processes, Optional(ElementsAre(100, 200)));
}

TEST_F(NvmlTest, LeavesUnsetWhatItDoesNot) {
  const NvmlReading reading = Open()->Read();
  EXPECT_EQ(reading.sm_clock_hz, std::nullopt);
  EXPECT_EQ(reading.power_watts, std::nullopt);
  EXPECT_EQ(reading.memory_used_bytes, std::nullopt);
  EXPECT_EQ(reading.memory_free_bytes, std::nullopt);
}

TEST_F(NvmlTest, AMonitorTellsTheDevicesVitals) {
  fake_->clocks[1] = 1755;
  fake_->milliwatts = 412'500;
  fake_->clock_reasons = kClockPowerCap;
  fake_->memory_used = 700;
  fake_->processes = {static_cast<unsigned>(getpid())};
  GpuMonitor monitor(Open());
  const DeviceVitals alone = monitor.Read();
  EXPECT_EQ(alone.state.sm_clock_hz, 1755e6);
  EXPECT_EQ(alone.state.power_watts, 412.5);
  EXPECT_EQ(alone.state.temperature_celsius, 41);
  EXPECT_THAT(alone.state.clock_reasons, ElementsAre("sw_power_cap"));
  EXPECT_EQ(alone.state.memory_used_bytes, 700U);
  EXPECT_THAT(alone.exclusive, Optional(true));

  fake_->processes.push_back(1);  // Nobody of ours.
  EXPECT_THAT(monitor.Read().exclusive, Optional(false));
  fake_->processes.clear();  // The driver hides processes from us.
  fake_->memory_used = 0;
  EXPECT_EQ(monitor.Read().exclusive, std::nullopt);
  EXPECT_EQ(monitor.Read().state.memory_used_bytes, 0U);
}

TEST_F(NvmlTest, KnowsWhatStaysAsItIs) {
  const auto nvml = Open();
  EXPECT_EQ(nvml->driver(), "580.65.06");
  EXPECT_EQ(nvml->max_sm_clock_hz(), 1980e6);
  EXPECT_EQ(nvml->max_memory_clock_hz(), 3201e6);
  EXPECT_EQ(nvml->partition(), "");
}

TEST_F(NvmlTest, TellsAPartOfAGpu) {
  EXPECT_FALSE(Open()->Read().part_of_gpu);
  fake_->mps_processes = {300};
  EXPECT_EQ(Open()->partition(), "mps");
  EXPECT_FALSE(Open()->Read().part_of_gpu) << "its processes are seen";
  fake_->mig_mode = 1;
  EXPECT_EQ(Open()->partition(), "mig");
  EXPECT_TRUE(Open()->Read().part_of_gpu);
}

TEST_F(NvmlTest, CountsTheProcessesOfMpsToo) {
  fake_->processes = {100};
  fake_->mps_processes = {300};
  EXPECT_THAT(Open()->Read().processes, Optional(ElementsAre(100, 300)));
}

TEST_F(NvmlTest, CountsTheProcessesThatDrawToo) {
  fake_->processes = {100};
  fake_->graphics_processes = {400};
  EXPECT_THAT(Open()->Read().processes, Optional(ElementsAre(100, 400)));
}

TEST_F(NvmlTest, MoreProcessesThanItsListHoldsAreManyNotNone) {
  fake_->processes.assign(1000, 7);
  EXPECT_THAT(Open()->Read().processes, Optional(SizeIs(64)));
}

TEST_F(NvmlTest, SaysWhyItCannotBeHad) {
  EXPECT_THAT(OpenNvml("GPU-1", {"/nowhere/libnvidia-ml.so"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/libnvidia-ml.so")));
  EXPECT_THAT(OpenNvml("GPU-2", {FAKE_NVML}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("GPU-2"), HasSubstr("said by the fake"))));
  fake_->init_error = 9;
  EXPECT_THAT(OpenNvml("GPU-1", {FAKE_NVML}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("nvmlInit")));
}

}  // namespace
}  // namespace gridclock
