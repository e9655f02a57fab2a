#include "kernels/device/cuda/gpu_calibration.h"

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

GpuCalibration Some() {
  return {.empty_event_pair_ns = 1280,
          .isolated_ns = 2950,
          .device_time_ns = 800,
          .back_to_back_ns = 530.5,
          .host_no_sync_ns = 2100,
          .host_sync_ns = 10100,
          .event_pair_ns = 4900,
          .serial_beyond_ns = 1'300,
          .serial = GpuCalibration::kSerialTaken,
          .isolated_kernels_ns = 14'200,
          .device_time_kernels_ns = 34'550,
          .isolated_copy_ns = 8'150,
          .device_time_copy_ns = 5'100,
          .event_step_ns = 32,
          .device_timer_step_ns = 1e3 / 3,
          .copy_bandwidth = 4e12,
          .read_bandwidth = 4.4e12,
          .l2_bandwidth = 8e12};
}

TEST(GpuCalibrationText, IsReadAsItWasWritten) {
  ASSERT_OK_AND_ASSIGN(const GpuCalibration read,
                       GpuCalibrationFromText(ToText(Some(), "GPU-1"), "GPU-1"));
  EXPECT_EQ(read, Some());
}

TEST(GpuCalibrationText, OfAnotherDeviceIsToldFromABadOne) {
  EXPECT_THAT(GpuCalibrationFromText(ToText(Some(), "GPU-1"), "GPU-2"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("want that of GPU-2")));
}

TEST(GpuCalibrationText, RefusesWhatItDidNotWrite) {
  const std::string good = ToText(Some(), "u");
  std::string nan = good, negative = good, twice = good, unknown = good;
  nan.replace(nan.find("=800"), 4, "=nan");
  negative.replace(negative.find("=800"), 4, "=-80");
  unknown.replace(unknown.find("isolated"), 8, "isolates");
  twice += ";isolated=1";
  for (const std::string& text : {std::string(), std::string("uuid=u"), nan, negative, twice,
                                  unknown, good + ";x=1", good.substr(0, good.rfind(';'))}) {
    EXPECT_FALSE(GpuCalibrationFromText(text, "u").ok()) << text;
  }
}

TEST(GpuCalibration, TheLaunchOffsetIsIsolatedLessDeviceTime) {
  EXPECT_EQ(Some().LaunchOffsetNs(), 2150);
  EXPECT_EQ(Some().FloorOf(Method::kIsolated), 2950);
  EXPECT_EQ(Some().FloorOf(Method::kBackToBack), 530.5);
  GpuCalibration without = Some();
  without.device_time_ns = 0;  // No CUPTI.
  EXPECT_EQ(without.LaunchOffsetNs(), 0);
  EXPECT_EQ(without.KernelOffsetNs(), 0);
  EXPECT_EQ(without.CopyOffsetNs(), 0);
}

TEST(GpuCalibration, FurtherKernelsAndCopiesHaveOffsetsOfTheirOwn) {
  EXPECT_EQ(Some().KernelOffsetNs(), -1500) << "15 of them, 22,500 ns less than one alone";
  EXPECT_EQ(Some().CopyOffsetNs(), 900);
}

double RateOf(const std::vector<FlopRate>& rates, DType dtype) {
  const auto rate = std::find_if(rates.begin(), rates.end(),
                                 [&](const FlopRate& known) { return known.dtype == dtype; });
  return rate == rates.end() ? 0 : rate->flops_per_second;
}

TEST(FlopRates, AreThoseOfTheDataSheets) {
  // H200, 132 SMs at the 1.83 GHz that its sheet computes tensor rates with: 989 TFLOP/s of bf16,
  // 1,979 of f8; at 1.98 GHz, 67 of f32 and of f64 by tensor cores.
  EXPECT_NEAR(RateOf(NominalFlopRates(90, 132, 1.83e9), DType::kBF16), 989e12, 2e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(90, 132, 1.83e9), DType::kF8E4M3), 1979e12, 3e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(90, 132, 1.98e9), DType::kF32), 67e12, 1e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(90, 132, 1.98e9), DType::kF64), 67e12, 1e12);
  // A100, 108 SMs at 1.41 GHz: 312 of f16, 19.5 of f32; T4, 40 SMs at 1.59 GHz: 65 of f16, 8.1.
  EXPECT_NEAR(RateOf(NominalFlopRates(80, 108, 1.41e9), DType::kF16), 312e12, 1e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(80, 108, 1.41e9), DType::kF32), 19.5e12, 0.1e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(75, 40, 1.59e9), DType::kF16), 65e12, 1e12);
  EXPECT_NEAR(RateOf(NominalFlopRates(75, 40, 1.59e9), DType::kF32), 8.1e12, 0.1e12);
  EXPECT_EQ(RateOf(NominalFlopRates(75, 40, 1.59e9), DType::kBF16), 0);
}

TEST(CopyTimes, OneSeriesThatMetABusyBusDoesNotCount) {
  const CopyTimes far = SecondFarthest({{.isolated_ns = 6'000, .device_time_ns = 3'000},
                                        {.isolated_ns = 90'000, .device_time_ns = 4'000},
                                        {.isolated_ns = 9'000, .device_time_ns = 1'500},
                                        {.isolated_ns = 9'500, .device_time_ns = 4'000}});
  EXPECT_EQ(far.isolated_ns, 9'000);
  EXPECT_EQ(far.device_time_ns, 1'500);
}

TEST(SerialBeyond, IsTheMedianOfAnEmptyKernel) {
  ASSERT_OK_AND_ASSIGN(
      const double beyond,
      SerialBeyond({.empty = {{800, 2'090}, {810, 9'000}, {800, 2'100}},
                    .working = {{15'000, 16'300}, {15'100, 16'300}, {0, 90'000}}}));
  EXPECT_EQ(beyond, 1'300);
}

TEST(SerialBeyond, OfAClockThatMovesEitherOrderCountsAsMuch) {
  const std::vector<RecordPair> pairs = {{800, 2'150}, {850, 2'100}, {800, 2'150},
                                         {850, 2'100}, {800, 2'150}, {850, 2'100}};
  ASSERT_OK_AND_ASSIGN(const double beyond, SerialBeyond({.empty = pairs, .working = pairs}));
  EXPECT_EQ(beyond, 1'300);
}

// What would make every time of many blocks too short, or is no constant.
TEST(SerialBeyond, ThatCannotBeIsRefusedWithItsFigures) {
  EXPECT_EQ(kMostSerialBeyondNs, 5'000);
  EXPECT_EQ(kSameBeyondWithinNs, 300);
  const auto of = [](double empty, double working) {
    return SerialBeyond({.empty = {{800, 800 + empty}}, .working = {{15'000, 15'000 + working}}});
  };
  using Both = std::pair<double, double>;
  for (const auto& [empty, working] :
       {Both(1'300, 1'600), Both(1'300, 1'000), Both(0, 0), Both(5'000, 5'000)}) {
    EXPECT_THAT(of(empty, working), IsOk());
  }
  for (const auto& [empty, working] :
       {Both(1'300, 1'601), Both(1'300, 999), Both(-10, -10), Both(5'001, 5'001)}) {
    EXPECT_THAT(of(empty, working),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr(absl::StrCat("by ", empty, " ns of an empty kernel and ",
                                                working, " ns of one that works"))));
  }
}

TEST(FlopRates, OfAnUnknownDeviceAreNotClaimed) {
  EXPECT_THAT(NominalFlopRates(130, 100, 2e9), IsEmpty());
  EXPECT_THAT(NominalFlopRates(90, 132, 0), IsEmpty());
}

constexpr std::uint64_t kL2 = 50 << 20;

TEST(GpuRoofline, IsOfTheL2WhereTheWorkFitsAndTheCacheIsHot) {
  const auto hot = GpuRoofline(Some(), {}, kL2, {.bytes = 88'000'000}, L2State::kHot);
  EXPECT_NEAR(hot.ns, 10'000, 1e-6);
  EXPECT_EQ(hot.basis, "bytes over 1.1 x 8000.0 GB/s of the L2 cache, measured");
  const auto cold = GpuRoofline(Some(), {}, kL2, {.bytes = 88'000'000}, L2State::kColdClean);
  EXPECT_NEAR(cold.ns, 88e6 / (1.1 * 4400), 1e-6);
  EXPECT_EQ(cold.basis, "bytes over 1.1 x 4400.0 GB/s of memory, measured");
  const auto large = GpuRoofline(Some(), {}, kL2, {.bytes = 880'000'000}, L2State::kHot);
  EXPECT_NEAR(large.ns, (880e6 - kL2) / (1.1 * 4400), 1e-6) << "an L2 of it may still be there";
  EXPECT_EQ(large.basis, "827571200 of 880000000 bytes over 1.1 x 4400.0 GB/s of memory, measured");
}

// `square` of 6M floats after a cold cache: its output fits the L2, and is written back after the
// launch has ended.
TEST(GpuRoofline, HoldsNoWriteAgainstMemoryThatTheL2MayKeep) {
  const Work square{.bytes = 48'000'000, .written = 24'000'000};
  for (const L2State cold : {L2State::kColdClean, L2State::kColdDirty}) {
    const auto least = GpuRoofline(Some(), {}, kL2, square, cold);
    EXPECT_NEAR(least.ns, 48e6 / (1.1 * 8000), 1e-6) << "24 MB from memory take 4,959 ns";
  }
  // 100 MB read, 100 MB written, of which 52.4288 MB may stay.
  const Work large{.bytes = 200'000'000, .written = 100'000'000};
  const auto least = GpuRoofline(Some(), {}, kL2, large, L2State::kColdClean);
  EXPECT_NEAR(least.ns, 147'571'200 / (1.1 * 4400), 1e-6);
  EXPECT_EQ(least.basis, "147571200 of 200000000 bytes over 1.1 x 4400.0 GB/s of memory, measured");
}

// What is worked on in place counts twice and stands in the cache once.
TEST(GpuRoofline, LetsAHotOperandInPlaceStayInTheL2) {
  const Work in_place{.bytes = 2 * kL2, .written = kL2};
  EXPECT_NEAR(GpuRoofline(Some(), {}, kL2, in_place, L2State::kHot).ns, 2 * kL2 / (1.1 * 8000),
              1e-6);
  const Work larger{.bytes = 600'000'000, .written = 300'000'000};
  EXPECT_NEAR(GpuRoofline(Some(), {}, kL2, larger, L2State::kHot).ns,
              2 * (300e6 - kL2) / (1.1 * 4400), 1e-6);
}

TEST(GpuRoofline, TakesTheRateOfTheDtypeAndTheSlowerOfBytesAndFlops) {
  const std::vector<FlopRate> rates = {{DType::kF32, 60e12}, {DType::kBF16, 900e12}};
  const Work work{.bytes = 1, .flops = 900'000'000, .dtype = DType::kF32};
  EXPECT_NEAR(GpuRoofline(Some(), rates, kL2, work, L2State::kHot).ns, 15'000, 1e-6);
  Work half = work;
  half.part_of_rate = 0.5;
  const auto of_half = GpuRoofline(Some(), rates, kL2, half, L2State::kHot);
  EXPECT_NEAR(of_half.ns, 30'000, 1e-6);
  EXPECT_THAT(of_half.basis, HasSubstr("30.0 TFLOP/s, 0.5 of that of f32"));
  Work any = work;
  any.dtype = std::nullopt;
  const auto best = GpuRoofline(Some(), rates, kL2, any, L2State::kHot);
  EXPECT_NEAR(best.ns, 1'000, 1e-6);
  EXPECT_THAT(best.basis, HasSubstr("the fastest dtype"));
  Work unknown = work;
  unknown.dtype = DType::kI64;
  EXPECT_LT(GpuRoofline(Some(), rates, kL2, unknown, L2State::kHot).ns, 1);
}

TEST(SweepsMemory, OnlyWhereTheCacheHoldsAQuarterAtMost) {
  constexpr std::uint64_t kMiB = 1 << 20;
  EXPECT_TRUE(SweepsMemory(1024 * kMiB, 60 * kMiB));
  EXPECT_TRUE(SweepsMemory(240 * kMiB, 60 * kMiB));
  EXPECT_FALSE(SweepsMemory(240 * kMiB - 4, 60 * kMiB));
  EXPECT_FALSE(SweepsMemory(64 * kMiB, 60 * kMiB)) << "what a crowded GPU has left";
}

TEST(GpuRoofline, WithoutTheBandwidthOfMemoryIsThatOfTheL2OrUnknown) {
  GpuCalibration crowded = Some();
  crowded.copy_bandwidth = crowded.read_bandwidth = 0;
  const Work work{.bytes = 88'000'000};
  EXPECT_NEAR(GpuRoofline(crowded, {}, kL2, work, L2State::kHot).ns, 10'000, 1e-6);
  const auto cold = GpuRoofline(crowded, {}, kL2, work, L2State::kColdClean);
  EXPECT_EQ(cold.ns, 0);
  EXPECT_EQ(cold.basis, "");
}

TEST(GpuRoofline, IsUnknownWithoutAMeasurement) {
  EXPECT_EQ(GpuRoofline({}, {}, kL2, {.bytes = 1000, .flops = 10}, L2State::kHot).ns, 0);
}

}  // namespace
}  // namespace gridclock
