#include "kernels/device/cpu/calibration.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/api/bf16_units.h"
#include "kernels/device/cpu/tbb_threads.h"

namespace gridclock {
namespace {

using testing::IsEmpty;

constexpr std::uint64_t kMiB = 1 << 20;

// Two CPUs with a last-level cache of `llc` between them.
HostFacts Host(std::uint64_t llc, std::uint64_t memory = 0) {
  return {.mask = {0, 1},
          .cpus = 2,
          .memory_bytes = memory,
          .l1_bytes = 32 << 10,
          .l2_bytes = 1 << 20,
          .llc_bytes = llc,
          .last_caches = {{llc, {0, 1}}}};
}

TEST(Roofline, TakesTheLevelThatTheSetFitsAndTheSlowerOfBytesAndFlops) {
  const Calibration calibration{
      .levels = {{"L2", 1000, 4096, 11e9}, {"memory", kEverything, 128 << 20, 1.1e9}},
      .flops_per_second = 110e9};
  // 605 bytes at 1.1 x 11 GB/s.
  const auto cached = RooflineFrom(calibration, {.bytes = 605}, L2State::kHot);
  EXPECT_NEAR(cached.ns, 50, 1e-9);
  EXPECT_EQ(cached.basis, "bytes over 1.1 x 11.0 GB/s of L2, measured on 4 KiB");
  const auto cold = RooflineFrom(calibration, {.bytes = 1210}, L2State::kColdClean);
  EXPECT_NEAR(cold.ns, 1000, 1e-9);
  EXPECT_EQ(cold.basis, "bytes over 1.1 x 1.1 GB/s of memory, measured on 128 MiB");
  const auto large = RooflineFrom(calibration, {.bytes = 13100}, L2State::kHot);
  EXPECT_NEAR(large.ns, 10000, 1e-9) << "1,000 bytes of it may still be in the cache";
  EXPECT_EQ(large.basis, "12100 of 13100 bytes over 1.1 x 1.1 GB/s of memory, measured on 128 MiB");
  const auto flops = RooflineFrom(calibration, {.flops = 12100}, L2State::kHot);
  EXPECT_NEAR(flops.ns, 100, 1e-9);
  EXPECT_EQ(flops.basis, "flops over 1.1 x 110.0 GFLOP/s of f32, measured");
}

// Products of bf16 may go by units that f32 has no part in.
TEST(Roofline, IsThatOfUnitsForBf16OfWhatMayUseThem) {
  Calibration calibration{.levels = {}, .flops_per_second = 110e9, .bf16_per_second = 1100e9};
  const auto roofline = [&](std::optional<DType> dtype) {
    return RooflineFrom(calibration, {.flops = 12100, .dtype = dtype}, L2State::kHot);
  };
  EXPECT_NEAR(roofline(DType::kBF16).ns, 10, 1e-9);
  EXPECT_EQ(roofline(DType::kBF16).basis, "flops over 1.1 x 1100.0 GFLOP/s of bf16, measured");
  EXPECT_NEAR(roofline(std::nullopt).ns, 10, 1e-9) << "who does not say may use them";
  EXPECT_NEAR(roofline(DType::kF32).ns, 100, 1e-9);
  EXPECT_NEAR(roofline(DType::kF16).ns, 100, 1e-9);
  for (const double slower : {0.0, 55e9}) {
    calibration.bf16_per_second = slower;
    EXPECT_NEAR(roofline(DType::kBF16).ns, 100, 1e-9) << "they need not be used";
  }
}

TEST(Roofline, IsUnknownForASetWhoseLevelWasNotMeasured) {
  const Calibration calibration{.levels = {{"L2", 1000, 4096, 11e9}}, .flops_per_second = 110e9};
  EXPECT_EQ(RooflineFrom(calibration, {.bytes = 12100}, L2State::kHot).ns, 0);
  EXPECT_THAT(RooflineFrom(calibration, {.bytes = 12100}, L2State::kHot).basis, IsEmpty());
  EXPECT_EQ(RooflineFrom(calibration, {.bytes = 1210}, L2State::kColdClean).ns, 0);
  const Work both{.bytes = 12100, .flops = 12100};
  EXPECT_NEAR(RooflineFrom(calibration, both, L2State::kHot).ns, 100, 1e-9);
  EXPECT_EQ(MemoryBandwidth(calibration), 0);
}

// Caches write back: what fits them of an output need not reach memory before the launch ends.
TEST(Roofline, HoldsNoWriteAgainstMemoryThatCachesMayKeep) {
  const Calibration calibration{.levels = {{"L1", 1000, 512, 110e9},
                                           {"L2", 4000, 2048, 11e9},
                                           {"memory", kEverything, 128 << 20, 1.1e9}}};
  const auto ns = [&](std::int64_t read, std::int64_t written, L2State state) {
    return RooflineFrom(calibration, {.bytes = read + written, .written = written}, state).ns;
  };
  // From memory 6,050 read; 5,000 of what is written fit both caches together.
  EXPECT_NEAR(ns(6050, 0, L2State::kColdClean), 5000, 1e-9);
  EXPECT_NEAR(ns(6050, 5000, L2State::kColdClean), 5000, 1e-9);
  EXPECT_NEAR(ns(6050, 5000 + 6050, L2State::kColdDirty), 10000, 1e-9);
  // Hot: 5,000 of what is read too.
  EXPECT_NEAR(ns(5000 + 6050, 5000, L2State::kHot), 5000, 1e-9);
  // In place, within the caches: the L2 moves 1,420 both ways beyond what the L1 holds.
  EXPECT_NEAR(ns(2420, 2420, L2State::kHot), 2 * 1420 / 12.1, 1e-9);
}

TEST(MemorySet, IsFourTimesAllLastCaches) {
  EXPECT_EQ(MemorySetBytes(Host(32 * kMiB), 2), 128 * kMiB);
  HostFacts server = Host(32 * kMiB);
  server.last_caches.assign(8, {32 * kMiB, {0}});
  EXPECT_EQ(MemorySetBytes(server, 64), 1024 * kMiB);
}

TEST(MemorySet, IsAtMostAQuarterOfMemoryAndNothingBelowTwiceTheCaches) {
  EXPECT_EQ(MemorySetBytes(Host(32 * kMiB, 320 * kMiB), 2), 80 * kMiB);
  EXPECT_EQ(MemorySetBytes(Host(32 * kMiB, 252 * kMiB), 2), 0U);
}

TEST(MemorySet, AssumesCachesThatAreNotTold) {
  EXPECT_EQ(MemorySetBytes({.mask = {0, 1}, .cpus = 2, .untold = {0, 1}}, 2), 128 * kMiB);
}

TEST(Calibration, MeasuresEveryLevelNoneSlowerThanTheNext) {
  TbbThreads threads(2);
  const Calibration calibration = Calibrate(Host(8 * kMiB), threads);
  ASSERT_EQ(calibration.levels.size(), 4U);
  EXPECT_EQ(calibration.levels.back().name, "memory");
  EXPECT_EQ(calibration.levels.back().fits, kEverything);
  EXPECT_EQ(calibration.levels.back().set_bytes, 32 * kMiB);
  EXPECT_EQ(calibration.levels[2].fits, 8 * kMiB);
  EXPECT_EQ(MemoryBandwidth(calibration), calibration.levels.back().bytes_per_second);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_GE(calibration.levels[i - 1].bytes_per_second, calibration.levels[i].bytes_per_second);
  }
  EXPECT_GT(calibration.levels.back().bytes_per_second, 1e8);
  EXPECT_GT(calibration.flops_per_second, 1e8);
}

TEST(Calibration, LeavesMemoryOutWhereItsSetWouldFitTheCaches) {
  TbbThreads threads(2);
  const Calibration calibration = Calibrate(Host(8 * kMiB, 60 * kMiB), threads);
  ASSERT_EQ(calibration.levels.size(), 3U);
  EXPECT_EQ(calibration.levels.back().name, "the last cache");
  EXPECT_EQ(MemoryBandwidth(calibration), 0);
}

TEST(Calibration, DoesNotHoldHotSetsOfUnknownCachesAgainstMemory) {
  TbbThreads threads(2);
  const Calibration calibration = Calibrate({.mask = {0, 1}, .cpus = 2, .untold = {0, 1}}, threads);
  ASSERT_EQ(calibration.levels.size(), 2U);
  EXPECT_EQ(calibration.levels[0].name, "caches of unknown size");
  EXPECT_EQ(calibration.levels[0].fits, 32 * kMiB);
}

TEST(Calibration, AMachineThatProvesFasterIsMeasuredAgain) {
  TbbThreads threads(2);
  Calibration slow{.levels = {{"L2", 4096, 4096, 1.0}, {"memory", kEverything, 8 * kMiB, 0.5}},
                   .flops_per_second = 1};

  Remeasure({.bytes = 1 << 30}, L2State::kHot, threads, &slow);

  EXPECT_GT(slow.levels[1].bytes_per_second, 1e8);
  EXPECT_GE(slow.levels[0].bytes_per_second, slow.levels[1].bytes_per_second);
  EXPECT_EQ(slow.flops_per_second, 1) << "no flops were asked about";
  Remeasure({.flops = 1}, L2State::kHot, threads, &slow);
  EXPECT_GT(slow.flops_per_second, 1e8);
}

TEST(Bf16Units, AreHereWhereTheSystemShowsThem) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  const std::string said(std::istreambuf_iterator<char>(cpuinfo), {});
  const auto shows = [&](const char* flag) { return said.find(flag) != std::string::npos; };
  EXPECT_EQ(bf16_units::HasMatrixUnits(), shows(" amx_tile") && shows(" amx_bf16"));
  EXPECT_EQ(bf16_units::HasDotProducts(), shows(" avx512_bf16"));
}

TEST(Calibration, UnitsForBf16AreMeasuredWhereTheyAre) {
  TbbThreads threads(2);
  const Calibration calibration = Calibrate(Host(1 * kMiB), threads);
  if (!bf16_units::HasMatrixUnits() && !bf16_units::HasDotProducts()) {
    EXPECT_EQ(calibration.bf16_per_second, 0);
    GTEST_SKIP() << "no units for bf16";
  }
  EXPECT_GT(calibration.bf16_per_second, 1e9);
  Calibration slow{.levels = {}, .flops_per_second = 1, .bf16_per_second = 1};
  Remeasure({.flops = 1, .dtype = DType::kF32}, L2State::kHot, threads, &slow);
  EXPECT_EQ(slow.bf16_per_second, 1) << "f32 does not use them";
  Remeasure({.flops = 1, .dtype = DType::kBF16}, L2State::kHot, threads, &slow);
  EXPECT_GT(slow.bf16_per_second, 1e9);
}

TEST(Calibration, WhatWasFasterOnceIsKept) {
  TbbThreads threads(2);
  Calibration fast{.levels = {{"memory", kEverything, 8 * kMiB, 1e18}}, .flops_per_second = 1e20};
  Remeasure({.bytes = 1 << 30, .flops = 1}, L2State::kHot, threads, &fast);
  EXPECT_EQ(fast.levels[0].bytes_per_second, 1e18);
  EXPECT_EQ(fast.flops_per_second, 1e20);
  Calibration unmeasured;
  Remeasure({.bytes = 1 << 30, .flops = 1}, L2State::kHot, threads, &unmeasured);
  EXPECT_EQ(unmeasured.flops_per_second, 0);
}

TEST(CalibrationText, IsReadAsItWasWritten) {
  const Calibration calibration{
      .levels = {{"L1", 32768, 16384, 3.25e11}, {"memory", kEverything, 1 << 27, 1e10 / 3}},
      .flops_per_second = 1e11 / 7};

  const auto read = CalibrationFromText(ToText(calibration));

  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->levels.size(), 2U);
  EXPECT_EQ(read->levels[0].name, "L1");
  EXPECT_EQ(read->levels[0].fits, 32768U);
  EXPECT_EQ(read->levels[1].fits, kEverything);
  EXPECT_EQ(read->levels[1].set_bytes, 1U << 27);
  EXPECT_EQ(read->levels[1].bytes_per_second, 1e10 / 3);
  EXPECT_EQ(read->flops_per_second, 1e11 / 7);
  EXPECT_EQ(read->bf16_per_second, 0);
}

TEST(CalibrationText, TellsOfUnitsForBf16) {
  const auto read = CalibrationFromText(ToText({.levels = {{"L1", 32768, 16384, 3.25e11}},
                                                .flops_per_second = 2,
                                                .bf16_per_second = 1e12 / 7}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->flops_per_second, 2);
  EXPECT_EQ(read->bf16_per_second, 1e12 / 7);
}

TEST(CalibrationText, RefusesWhatItDidNotWrite) {
  for (const char* text :
       {"", "1e9", "L1=1;1e9", "L1=1=2;1e9", "=1=8=2;1e9", "L1=x=8=2;1e9", "L1=1=x=2;1e9",
        "L1=1=8=nan;1e9", "L1=1=8=-2;1e9", "L1=1=8=2;0", "L1=1=8=2;inf", "L1=1=8=2;",
        "L1=1=8=2=3;1e9", "L1=1=8=2;1e9=", "L1=1=8=2;1e9=0", "L1=1=8=2;1e9=1e9=1e9"}) {
    EXPECT_FALSE(CalibrationFromText(text).ok()) << text;
  }
}

}  // namespace
}  // namespace gridclock
