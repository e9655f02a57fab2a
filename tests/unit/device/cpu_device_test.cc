#include "kernels/device/cpu/cpu_device.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<CpuDevice> MakeDevice(int threads) {
  return *CpuDevice::Create({.threads = threads, .level = "x86-64-v2", .calibrate = false});
}

TEST(TbbThreads, CoverEachItemOnceAndCutAtTheGrain) {
  TbbThreads threads(3);
  std::vector<std::atomic<int>> seen(1001);
  std::atomic<int> calls{0};
  threads.ParallelFor(1001, 100, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(begin % 100, 0);
    EXPECT_TRUE(end == 1001 || end % 100 == 0);
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
    ++calls;
  });
  EXPECT_EQ(calls, 3);
  for (const auto& count : seen) EXPECT_EQ(count, 1);
}

TEST(TbbThreads, RunLittleWorkOnTheCallingThread) {
  TbbThreads threads(4);
  const auto caller = std::this_thread::get_id();
  int calls = 0;
  threads.ParallelFor(100, 100, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    ++calls;
  });
  threads.ParallelFor(0, 1, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CpuDevice, RefusesAWrongNumberOfThreads) {
  EXPECT_THAT(CpuDevice::Create({.threads = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 to 1024, got -1")));
}

TEST(CpuDevice, SaysWhatItIs) {
  const auto device = MakeDevice(2);
  EXPECT_EQ(device->info().name, "cpu");
  EXPECT_EQ(device->info().traits.kind, "cpu");
  EXPECT_EQ(device->info().level, "x86-64-v2");
  EXPECT_EQ(device->info().units, 2);
  EXPECT_GT(device->info().memory_bytes, 0U);
  EXPECT_GT(device->info().clock_step_ns, 0);
  EXPECT_TRUE(device->uses_host_memory());
}

TEST(CpuDevice, AllocatesAlignedMemoryAndKeepsItWarm) {
  const auto device = MakeDevice(1);
  void* first = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto buffer, device->Allocate(1000));
    first = buffer->data();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
    EXPECT_EQ(buffer->size(), 1000U);
  }
  ASSERT_OK_AND_ASSIGN(const auto again, device->Allocate(1000));
  EXPECT_EQ(again->data(), first);
}

TEST(CpuDevice, AnswersAnAllocationThatCannotFitWithTheNumbers) {
  const auto device = MakeDevice(1);
  EXPECT_THAT(device->Allocate(std::uint64_t{1} << 60),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("1152921504606846976"), HasSubstr("free"))));
}

TEST(CpuDevice, TimesALaunchAndPassesItsErrorOn) {
  const auto device = MakeDevice(1);
  ASSERT_OK_AND_ASSIGN(const TimedLaunch timed,
                       device->Time(Method::kIsolated, [] { return absl::OkStatus(); }));
  EXPECT_GE(timed.host_end_ns, timed.host_start_ns);
  EXPECT_EQ(timed.duration_ns, static_cast<double>(timed.host_end_ns - timed.host_start_ns));
  EXPECT_THAT(device->Time(Method::kIsolated, [] { return absl::InternalError("broken"); }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("broken")));
}

TEST(CpuDevice, SaysWhichMethodsItHas) {
  const auto device = MakeDevice(1);
  EXPECT_THAT(device->methods(),
              ElementsAre(Method::kIsolated, Method::kHostSync, Method::kEventPair));
  EXPECT_THAT(device->Time(Method::kDeviceTime, [] { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("isolated")));
}

TEST(CpuDevice, EmptiesTheCachesOnlyWhenAsked) {
  const auto device = MakeDevice(2);
  EXPECT_THAT(device->PrepareCache(L2State::kHot), IsOk());
  EXPECT_THAT(device->PrepareCache(L2State::kColdClean), IsOk());
  EXPECT_THAT(device->PrepareCache(L2State::kColdDirty), IsOk());
}

TEST(CpuDevice, WithoutCalibrationItClaimsNoRoofline) {
  const auto device = MakeDevice(1);
  EXPECT_EQ(device->RooflineOf(1 << 20, 1 << 20, L2State::kHot).ns, 0);
}

TEST(Roofline, TakesTheLevelThatTheSetFitsAndTheSlowerOfBytesAndFlops) {
  const Calibration calibration{
      .levels = {{"L2", 1000, 11e9}, {"memory", std::uint64_t(-1), 1.1e9}},
      .flops_per_second = 110e9};
  // 1,210 bytes at 1.1 x 11 GB/s.
  const auto cached = RooflineFrom(calibration, 1210, 0, L2State::kHot);
  EXPECT_NEAR(cached.ns, 100, 1e-9);
  EXPECT_EQ(cached.basis, "bytes over 1.1 x 11.0 GB/s of L2, measured");
  EXPECT_NEAR(RooflineFrom(calibration, 1210, 0, L2State::kColdClean).ns, 1000, 1e-9);
  EXPECT_NEAR(RooflineFrom(calibration, 12100, 0, L2State::kHot).ns, 10000, 1e-9);
  const auto flops = RooflineFrom(calibration, 0, 12100, L2State::kHot);
  EXPECT_NEAR(flops.ns, 100, 1e-9);
  EXPECT_EQ(flops.basis, "flops over 1.1 x 110.0 GFLOP/s of f32, measured");
}

TEST(Calibration, MeasuresEveryLevelNoneSlowerThanTheNext) {
  TbbThreads threads(2);
  const HostFacts host{.cpus = 2, .l1_bytes = 32 << 10, .l2_bytes = 1 << 20, .llc_bytes = 8 << 20};
  const Calibration calibration = Calibrate(host, threads);
  ASSERT_EQ(calibration.levels.size(), 4U);
  EXPECT_EQ(calibration.levels.back().name, "memory");
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GE(calibration.levels[i - 1].bytes_per_second, calibration.levels[i].bytes_per_second);
  }
  EXPECT_GT(calibration.levels.back().bytes_per_second, 1e8);
  EXPECT_GT(calibration.flops_per_second, 1e8);
}

// A root with the files of a small machine.
class HostTest : public testing::Test {
 protected:
  void SetUp() override { root_ = testing::TempDir() + "/host_test_" + std::to_string(getpid()); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  std::string root_;
};

TEST_F(HostTest, ReadsModelCachesAndTheCgroupsLimits) {
  Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9B14\n");
  Write("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 1 kB\n");
  Write("/sys/fs/cgroup/memory.max", "536870912\n");
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  const std::string cache = "/sys/devices/system/cpu/cpu0/cache";
  Write(cache + "/index0/level", "1\n");
  Write(cache + "/index0/type", "Data\n");
  Write(cache + "/index0/size", "32K\n");
  Write(cache + "/index1/level", "1\n");
  Write(cache + "/index1/type", "Instruction\n");
  Write(cache + "/index1/size", "64K\n");
  Write(cache + "/index2/level", "3\n");
  Write(cache + "/index2/type", "Unified\n");
  Write(cache + "/index2/size", "16M\n");
  const HostFacts facts = ReadHostFacts(root_);
  EXPECT_EQ(facts.model, "AMD EPYC 9B14");
  EXPECT_EQ(facts.cpus, 1);
  EXPECT_EQ(facts.memory_bytes, 536870912U);
  EXPECT_EQ(facts.l1_bytes, 32768U);
  EXPECT_EQ(facts.l2_bytes, 0U);
  EXPECT_EQ(facts.llc_bytes, 16777216U);
}

TEST_F(HostTest, WithoutFilesNothingIsClaimed) {
  const HostFacts facts = ReadHostFacts(root_);
  EXPECT_EQ(facts.model, "unknown");
  EXPECT_GE(facts.cpus, 1);
  EXPECT_EQ(facts.llc_bytes, 0U);
  const Conditions conditions = Compare(ReadHostCounts(root_), ReadHostCounts(root_));
  EXPECT_FALSE(conditions.shared);
  EXPECT_FALSE(conditions.throttled);
  EXPECT_EQ(conditions.clock_hz, 0);
}

TEST_F(HostTest, TimeThatTheHostTookMakesTheDeviceShared) {
  Write("/proc/stat", "cpu  100 0 50 1000 0 0 0 5 0 0\n");
  const HostCounts before = ReadHostCounts(root_);
  Write("/proc/stat", "cpu  180 0 60 1000 0 0 0 15 0 0\n");
  EXPECT_TRUE(Compare(before, ReadHostCounts(root_)).shared);
  Write("/proc/stat", "cpu  1080 0 60 1000 0 0 0 15 0 0\n");
  EXPECT_FALSE(Compare(before, ReadHostCounts(root_)).shared);  // 1 % is the usual noise.
}

TEST_F(HostTest, AStopByTheQuotaIsThrottling) {
  Write("/sys/fs/cgroup/cpu.stat",
        "usage_usec 5\nnr_periods 3\nnr_throttled 7\nthrottled_usec 9\n");
  const HostCounts before = ReadHostCounts(root_);
  EXPECT_FALSE(Compare(before, ReadHostCounts(root_)).throttled);
  Write("/sys/fs/cgroup/cpu.stat",
        "usage_usec 5\nnr_periods 3\nnr_throttled 8\nthrottled_usec 9\n");
  EXPECT_TRUE(Compare(before, ReadHostCounts(root_)).throttled);
}

TEST(CalibrationTest, IsReadAsItWasWritten) {
  const Calibration calibration{
      .levels = {{"L1", 32768, 3.25e11}, {"memory", ~std::uint64_t{0}, 1e10 / 3}},
      .flops_per_second = 1e11 / 7};

  const auto read = CalibrationFromText(ToText(calibration));

  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->levels.size(), 2U);
  EXPECT_EQ(read->levels[0].name, "L1");
  EXPECT_EQ(read->levels[0].fits, 32768U);
  EXPECT_EQ(read->levels[1].fits, ~std::uint64_t{0});
  EXPECT_EQ(read->levels[1].bytes_per_second, 1e10 / 3);
  EXPECT_EQ(read->flops_per_second, 1e11 / 7);
}

TEST(CalibrationTest, RefusesWhatItDidNotWrite) {
  for (const char* text : {"", "1e9", "L1=1;1e9", "=1=2;1e9", "L1=x=2;1e9", "L1=1=nan;1e9",
                           "L1=1=-2;1e9", "L1=1=2;0", "L1=1=2;inf", "L1=1=2;", "L1=1=2=3;1e9"}) {
    EXPECT_FALSE(CalibrationFromText(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gridclock
