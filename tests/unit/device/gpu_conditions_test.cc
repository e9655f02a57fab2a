#include "kernels/device/cuda/gpu_conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/fake_root.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::int64_t kOwn[] = {100, 101};  // This process first.

NvmlReading Quiet() {
  return {.sm_clock_hz = 1.98e9, .clock_reasons = 0, .processes = {{100}}};
}

TEST(ClockReasons, HaveTheNamesOfNvml) {
  EXPECT_THAT(ClockReasonNames(0), IsEmpty());
  EXPECT_THAT(ClockReasonNames(kClockIdle | kClockPowerCap),
              ElementsAre("gpu_idle", "sw_power_cap"));
  EXPECT_THAT(ClockReasonNames(0x8 | 0x4000), ElementsAre("hw_slowdown", "other_4000"));
}

TEST(GpuConditions, OfAQuietDeviceSayNothing) {
  const Conditions conditions = CompareReadings(Quiet(), Quiet(), kSecond, kOwn);
  EXPECT_FALSE(conditions.throttled);
  EXPECT_FALSE(conditions.shared);
  EXPECT_FALSE(conditions.sharing_unknown);
}

TEST(GpuConditions, ADeviceOnItsWayUpIsNotThrottled) {
  NvmlReading before = Quiet(), after = Quiet();
  before.sm_clock_hz = 3.45e8;
  before.clock_reasons = kClockIdle;
  after.clock_reasons = kClockApplications;
  EXPECT_FALSE(CompareReadings(before, after, kSecond, kOwn).throttled);
}

TEST(GpuConditions, G12_PowerAndHeatThrottle) {
  for (const std::uint64_t reason : {kClockPowerCap, kClockHwSlowdown, kClockSwThermal,
                                     kClockHwThermal, kClockPowerBrake, kClockSyncBoost}) {
    NvmlReading after = Quiet();
    after.clock_reasons = reason;
    EXPECT_TRUE(CompareReadings(Quiet(), after, kSecond, kOwn).throttled) << reason;
    EXPECT_TRUE(CompareReadings(after, Quiet(), kSecond, kOwn).throttled) << reason;
  }
}

TEST(GpuConditions, SoDoesWhatHeldTheClockDownBetweenTheReadings) {
  NvmlReading before = Quiet(), after = Quiet();
  before.power_violation_ns = 5 * kSecond;
  after.power_violation_ns = 5 * kSecond + kSecond / 200;
  EXPECT_FALSE(CompareReadings(before, after, kSecond, kOwn).throttled);
  after.power_violation_ns = 5 * kSecond + kSecond / 50;
  EXPECT_TRUE(CompareReadings(before, after, kSecond, kOwn).throttled);
}

TEST(GpuConditions, G12_AnotherProcessMakesItShared) {
  NvmlReading after = Quiet();
  after.processes = {{100, 101}};
  EXPECT_FALSE(CompareReadings(Quiet(), after, kSecond, kOwn).shared) << "a worker of ours";
  after.processes = {{100, 102}};
  EXPECT_TRUE(CompareReadings(Quiet(), after, kSecond, kOwn).shared);
  EXPECT_TRUE(CompareReadings(after, Quiet(), kSecond, kOwn).shared);
}

TEST(GpuConditions, HiddenPidsLeaveSharingUnknownUnlessThereAreTooMany) {
  NvmlReading hidden = Quiet();
  hidden.processes = {{70001, 70002}};
  EXPECT_TRUE(CompareReadings(hidden, hidden, kSecond, kOwn).sharing_unknown);
  EXPECT_FALSE(CompareReadings(hidden, hidden, kSecond, kOwn).shared);
  hidden.processes = {{70001, 70002, 70003}};
  EXPECT_TRUE(CompareReadings(hidden, hidden, kSecond, kOwn).shared);
  EXPECT_FALSE(CompareReadings(hidden, hidden, kSecond, kOwn).sharing_unknown);
  hidden.processes = std::nullopt;
  EXPECT_TRUE(CompareReadings(hidden, hidden, kSecond, kOwn).sharing_unknown);
}

TEST(GpuConditions, APartOfAGpuDoesNotKnowWhoIsOnTheOthers) {
  NvmlReading part = Quiet();
  part.part_of_gpu = true;
  EXPECT_TRUE(CompareReadings(part, part, kSecond, kOwn).sharing_unknown);
  EXPECT_FALSE(CompareReadings(part, part, kSecond, kOwn).shared);
  part.processes = {{100, 102}};
  EXPECT_TRUE(CompareReadings(part, part, kSecond, kOwn).shared) << "on the part itself";
  EXPECT_FALSE(CompareReadings(part, part, kSecond, kOwn).sharing_unknown);
}

TEST(GpuConditions, KeepTheStateAtTheEnd) {
  NvmlReading after = Quiet();
  after.power_watts = 412.5;
  after.temperature_celsius = 61;
  after.memory_clock_hz = 3.2e9;
  after.memory_used_bytes = 700;
  after.memory_free_bytes = 300;
  after.clock_reasons = kClockPowerCap;
  const Conditions conditions = CompareReadings(Quiet(), after, kSecond, kOwn);
  EXPECT_EQ(conditions.state, (DeviceState{.sm_clock_hz = 1.98e9,
                                           .memory_clock_hz = 3.2e9,
                                           .power_watts = 412.5,
                                           .temperature_celsius = 61,
                                           .memory_used_bytes = 700,
                                           .memory_free_bytes = 300,
                                           .clock_reasons = {"sw_power_cap"}}));
}

TEST(CalibrationDoubt, SaysWhyFloorsAndOffsetsMayBeOff) {
  EXPECT_EQ(CalibrationDoubt({}, /*clock_steady=*/true), "");
  EXPECT_EQ(CalibrationDoubt({.sharing_unknown = true}, true), "") << "as in any container";
  EXPECT_THAT(CalibrationDoubt({.shared = true}, true),
              HasSubstr("measured beside another process on the device and may be off"));
  EXPECT_THAT(CalibrationDoubt({.throttled = true}, false),
              HasSubstr("while its clock was held down, on a clock that moved and may be off"));
}

TEST(OwnPids, AreThisProcessAndItsSiblingsOfTheSameProgram) {
  const FakeRoot root("own_pids");
  const auto write = [&](std::int64_t pid, const std::string& name, std::int64_t parent) {
    root.Write("/proc/" + std::to_string(pid) + "/stat",
               std::to_string(pid) + " (" + name + ") S " + std::to_string(parent) + " 11 11 0");
  };
  write(getpid(), "a (b) worke", 1);
  write(11, "a (b) worke", 1);
  write(12, "a (b) worke", 999999);
  write(13, "python3", 1);  // An orphan that the server adopted.
  root.Write("/proc/self_is_no_number/stat", "14 (a (b) worke) S 1");
  EXPECT_THAT(OwnPids(root.path()), ElementsAre(getpid(), 11));
}

TEST(OwnPids, AreReadFromTheRealSystemToo) {
  EXPECT_EQ(OwnPids().front(), getpid());
  EXPECT_THAT(OwnPids(), Not(Contains(getppid())));
}

}  // namespace
}  // namespace gridclock
