// The ways to time a launch, held against kernels that take a known time by the GPU's own timer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "kernels/device/cuda/device_kernels.h"
#include "kernels/device/cuda/gpu_calibration.h"
#include "kernels/device/cuda/gpu_timer.h"
#include "kernels/device/cuda/handles.h"
#include "kernels/timing/measure.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t kSpansNs[] = {5'000,   10'000,    20'000,    50'000,    100'000,   200'000,
                                      500'000, 1'000'000, 2'000'000, 5'000'000, 10'000'000};

#define SKIP_WITHOUT_CUPTI()                                           \
  SKIP_WITHOUT_GPU();                                                  \
  if (!Has(TheGpu(), Method::kDeviceTime)) {                           \
    GTEST_SKIP() << "no CUPTI here: " << Missing(Method::kDeviceTime); \
  }

std::string Missing(Method method) {
  for (const MethodFacts& facts : TheGpu().info().methods) {
    if (facts.method == method) return facts.missing;
  }
  return "not even listed";
}

TEST(CudaCalibration, IsPlausibleAndSurvivesItsText) {
  SKIP_WITHOUT_GPU();
  const DeviceInfo& info = TheGpu().info();
  ASSERT_OK_AND_ASSIGN(const GpuCalibration c,
                       GpuCalibrationFromText(TheGpu().CalibrationText(), info.uuid));
  std::printf(
      "empty event pair %.0f ns; empty kernel: isolated %.0f, device time %.0f, back to "
      "back %.0f, host_no_sync %.0f, host_sync %.0f, event pair %.0f ns; launch offset %.0f "
      "ns, of a further kernel %.0f, of a copy %.0f ns; a serial record %.0f ns more\nsteps: "
      "events %.1f ns, globaltimer %.1f "
      "ns; copy %.1f, read %.1f, L2 %.1f GB/s\n",
      c.empty_event_pair_ns, c.isolated_ns, c.device_time_ns, c.back_to_back_ns, c.host_no_sync_ns,
      c.host_sync_ns, c.event_pair_ns, c.LaunchOffsetNs(), c.KernelOffsetNs(), c.CopyOffsetNs(),
      c.serial_beyond_ns, c.event_step_ns, c.device_timer_step_ns, c.copy_bandwidth / 1e9,
      c.read_bandwidth / 1e9, c.l2_bandwidth / 1e9);
  for (const MethodFacts& facts : info.methods) {
    if (!facts.missing.empty()) {
      std::printf("method %d is missing: %s\n", static_cast<int>(facts.method),
                  facts.missing.c_str());
    }
  }
  EXPECT_GT(c.empty_event_pair_ns, 100);
  EXPECT_LT(c.empty_event_pair_ns, c.isolated_ns);
  EXPECT_LT(c.isolated_ns, 10'000);
  EXPECT_GT(c.back_to_back_ns, 100);
  EXPECT_LT(c.back_to_back_ns, c.isolated_ns);
  EXPECT_GT(c.host_sync_ns, c.host_no_sync_ns);
  EXPECT_GT(c.event_pair_ns, c.empty_event_pair_ns);
  EXPECT_GT(c.event_step_ns, 0);
  EXPECT_LE(c.event_step_ns, 1100);
  EXPECT_GT(c.device_timer_step_ns, 0);
  EXPECT_LE(c.device_timer_step_ns, 1100);
  EXPECT_GT(c.copy_bandwidth, 1e11);
  EXPECT_GT(c.read_bandwidth, 0.8 * c.copy_bandwidth);
  EXPECT_GT(c.l2_bandwidth, c.copy_bandwidth);
  EXPECT_EQ(info.launch_offset_ns, c.LaunchOffsetNs());
  if (!Has(TheGpu(), Method::kDeviceTime)) return;
  EXPECT_GT(c.device_time_ns, 100);
  EXPECT_GT(c.LaunchOffsetNs(), 0);
  EXPECT_LT(c.LaunchOffsetNs(), 10'000);
  EXPECT_LT(std::abs(c.KernelOffsetNs()), 5'000);
  // 1 to 9 us on an H200, from one time to the next.
  EXPECT_LT(std::abs(c.CopyOffsetNs()), 20'000);
  // 1.2 to 1.4 us on an H200. Were they refused, the method's note would say why.
  EXPECT_EQ(c.serial, GpuCalibration::kSerialTaken);
  EXPECT_LT(c.serial_beyond_ns, 3'000);
  for (const MethodFacts& facts : info.methods) EXPECT_EQ(facts.note, "");
  EXPECT_EQ(info.kernel_offset_ns, c.KernelOffsetNs());
  EXPECT_EQ(info.copy_offset_ns, c.CopyOffsetNs());
}

constexpr double kMostConstantNs = 2'000;
constexpr double kMostConstantOfBlocksNs = 5'000;  // Thousands of blocks end, one by one.

struct Row {
  double span = 0, device = 0, isolated = 0, slope = 0, pair = 0;
};

// The truth: what a kernel takes that ends when the GPU's timer has moved on by `span`. One
// constant, what starting and ending a kernel costs, is taken from the shortest.
TEST(CudaTiming, DeviceTimeIsThatOfTheGpusOwnTimer) {
  SKIP_WITHOUT_CUPTI();
  Device& device = TheGpu();
  std::vector<Row> rows;
  for (const std::uint64_t span : kSpansNs) {
    const auto spin = Spin(device, span);
    rows.push_back({.span = static_cast<double>(span),
                    .device = MedianBy(device, Method::kDeviceTime, spin, 15),
                    .isolated = MedianBy(device, Method::kIsolated, spin, 15),
                    .slope = MedianBy(device, Method::kBackToBack, spin, 5),
                    .pair = MedianBy(device, Method::kEventPair, spin, 15)});
  }
  const double constant = rows[0].device - rows[0].span;
  const double offset = device.info().launch_offset_ns;
  std::printf("constant of device time %.0f ns\n%12s %14s %10s %10s %14s %10s %14s %10s %12s\n",
              constant, "span us", "device time", "off ns", "allowed", "isolated", "off ns",
              "slope", "off ns", "event pair");
  // What every span has too long: else a time that is wrong by as much each time would pass.
  EXPECT_GE(constant, 0);
  EXPECT_LE(constant, kMostConstantNs);
  for (const Row& row : rows) {
    const double off = row.device - constant - row.span;
    const double allowed = std::max({300.0, 0.005 * row.span, device.info().device_timer_step_ns});
    std::printf("%12.0f %14.3f %10.0f %10.0f %14.3f %10.0f %14.3f %10.0f %12.3f %s\n",
                row.span / 1e3, row.device / 1e3, off, allowed, row.isolated / 1e3,
                row.isolated - offset - row.device, row.slope / 1e3, row.slope - row.device,
                row.pair / 1e3, std::abs(off) <= allowed ? "PASS" : "FAIL");
    EXPECT_LE(std::abs(off), allowed) << row.span;
    const double agree = std::max(500.0, 0.03 * row.device);
    EXPECT_LE(std::abs(row.isolated - offset - row.device), agree) << row.span;
    EXPECT_LE(std::abs(row.slope - row.device), agree) << row.span;
    EXPECT_GE(row.pair, row.device) << "the plain way never reads less";
  }
}

// The same of so many blocks that their records are serial ones. All are there before the shortest
// span ends, and end together.
TEST(CudaTiming, DeviceTimeIsThatOfTheGpusOwnTimerForManyBlocksAtOnce) {
  SKIP_WITHOUT_CUPTI();
  constexpr std::uint64_t kLongSpansNs[] = {50'000, 100'000, 200'000, 1'000'000, 10'000'000};
  constexpr int kLaunches = 64;
  constexpr double kApartNs = 500;
  Device& device = TheGpu();
  int at_once = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&at_once, cudaDevAttrMaxBlocksPerMultiprocessor, 0),
            cudaSuccess);
  const int blocks = static_cast<int>(device.info().units) * at_once;
  if (blocks < 1 << 11) GTEST_SKIP() << "too few SMs for blocks that have serial records";
  ASSERT_GT(device.info().serial_record_offset_ns, 0) << "no serial records: see the method's note";
  const std::uint64_t bytes = kLaunches * sizeof(unsigned long long);
  ASSERT_OK_AND_ASSIGN(const auto ends, device.Allocate(bytes));
  double constant = 0;
  for (const std::uint64_t span : kLongSpansNs) {
    ASSERT_THAT(device.Fill(ends->data(), std::byte{0}, bytes), IsOk());
    int launches = 0;
    const auto spin = [&]() -> absl::Status {
      if (launches == kLaunches) return absl::InternalError("no end is left for this launch");
      auto* end = static_cast<unsigned long long*>(ends->data()) + launches++;
      return CudaStatus(LaunchSpinningBlocks(span, blocks, end, StreamOf(device)), "spin");
    };
    const double device_ns = MedianBy(device, Method::kDeviceTime, spin, 15);
    // Events see it too, less what an empty kernel differs by.
    const double isolated_ns = MedianBy(device, Method::kIsolated, spin, 15);
    const double apart = isolated_ns - device.info().launch_offset_ns - device_ns;
    const auto asked = static_cast<double>(span);
    if (span == kLongSpansNs[0]) constant = device_ns - asked;
    const double off = device_ns - constant - asked;
    const double allowed = std::max({300.0, 0.005 * asked, device.info().device_timer_step_ns});
    const bool good = std::abs(off) <= allowed && std::abs(apart) <= kApartNs;
    std::printf(
        "many blocks: span %.0f us, device time %.3f us, off %.0f ns, allowed %.0f ns, isolated "
        "%.0f ns more %s\n",
        asked / 1e3, device_ns / 1e3, off, allowed, apart, good ? "PASS" : "FAIL");
    EXPECT_LE(std::abs(off), allowed) << span;
    EXPECT_LE(std::abs(apart), kApartNs) << span;
  }
  EXPECT_GE(constant, 0);
  EXPECT_LE(constant, kMostConstantOfBlocksNs);
}

struct Stamped {
  double device_ns = 0, stamps_ns = 0;  // By the device's record; from the first stamp to the last.
  double off() const { return device_ns - stamps_ns; }
};

// Of a launch whose kernels or blocks leave so many stamps: its median by how far the two are
// apart, for a launch takes another time than the one before. Of times that the device learns from
// nothing is claimed.
template <typename Launch>
absl::StatusOr<Stamped> MedianStamped(Device& device, std::size_t count, const Launch& launch) {
  constexpr std::size_t kLaunches = 15, kMostToLearn = 15;
  GC_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(count * sizeof(Stamps)));
  std::vector<Stamps> stamps(count);
  std::vector<Stamped> found;
  device.NewLaunch();
  for (std::size_t i = 0; found.size() < kLaunches && i < kLaunches + kMostToLearn; ++i) {
    GC_ASSIGN_OR_RETURN(const TimedLaunch timed, device.Time(Method::kDeviceTime, [&] {
      return CudaStatus(launch(static_cast<Stamps*>(buffer->data())), "stamp");
    }));
    GC_RETURN_IF_ERROR(device.CopyOut(std::as_writable_bytes(std::span(stamps)), buffer->data()));
    GC_RETURN_IF_ERROR(device.Synchronize());
    if (timed.provisional) continue;
    std::uint64_t first = stamps[0].start, last = stamps[0].end;
    for (const Stamps& one : stamps) {
      first = std::min(first, one.start);
      last = std::max(last, one.end);
    }
    found.push_back({timed.duration_ns, static_cast<double>(last - first)});
  }
  if (found.size() < kLaunches) return absl::UnavailableError("the device goes on learning");
  std::sort(found.begin(), found.end(),
            [](const Stamped& a, const Stamped& b) { return a.off() < b.off(); });
  return found[kLaunches / 2];
}

void ExpectWithin(const char* name, const Stamped& stamped, double off, double low, double high) {
  const bool good = off >= low && off <= high;
  std::printf("%s: device time %.3f us, stamps %.3f us, off %.0f ns, allowed %.0f to %.0f ns %s\n",
              name, stamped.device_ns / 1e3, stamped.stamps_ns / 1e3, off, low, high,
              good ? "PASS" : "FAIL");
  EXPECT_TRUE(good) << name;
}

// The truth of launches that are not one block: many blocks, whose stamps lack what starting the
// first and draining the last takes; and several kernels, with the gaps between them.
TEST(CudaTiming, DeviceTimeIsThatOfTheGpusOwnTimerForBlocksAndSeveralKernels) {
  SKIP_WITHOUT_CUPTI();
  constexpr int kBlocks = 1 << 17;
  constexpr double kLaunchAndDrainNs = 3'000;
  constexpr std::uint64_t kSpans[] = {20'000, 50'000, 30'000};
  Device& device = TheGpu();
  const double step = device.info().device_timer_step_ns;

  ASSERT_OK_AND_ASSIGN(const Stamped blocks, MedianStamped(device, kBlocks, [&](Stamps* stamps) {
                         return LaunchStampedBlocks(stamps, kBlocks, StreamOf(device));
                       }));
  const double allowed = std::max(1'000 + step, 0.01 * blocks.stamps_ns);
  ExpectWithin("blocks", blocks, blocks.off(), -allowed, allowed + kLaunchAndDrainNs);

  ASSERT_OK_AND_ASSIGN(const Stamped one, MedianStamped(device, 1, [&](Stamps* stamps) {
                         return LaunchStampedSpin(kSpans[0], stamps, StreamOf(device));
                       }));
  ASSERT_OK_AND_ASSIGN(const Stamped three, MedianStamped(device, 3, [&](Stamps* stamps) {
                         cudaError_t error = cudaSuccess;
                         for (std::size_t i = 0; i < 3 && error == cudaSuccess; ++i) {
                           error = LaunchStampedSpin(kSpans[i], stamps + i, StreamOf(device));
                         }
                         return error;
                       }));
  EXPECT_GE(three.stamps_ns, 100'000) << "the three spans";
  const double within = std::max({300.0, 0.005 * three.stamps_ns, step});
  ExpectWithin("three", three, three.off() - one.off(), -within, within);
}

// What records cost shows where blocks are many: short ones, ones that compute, and so few that
// what a serial record adds would show as well.
TEST(CudaTiming, MethodsAgreeOnKernelsOfManyBlocks) {
  SKIP_WITHOUT_CUPTI();
  Device& device = TheGpu();
  struct Kernel {
    int blocks, rounds;
  };
  for (const Kernel& kernel :
       {Kernel{1 << 18, 1}, Kernel{1 << 18, 16}, Kernel{1 << 16, 1}, Kernel{1 << 16, 16},
        Kernel{1 << 14, 16}, Kernel{1 << 13, 1}, Kernel{1 << 13, 16}, Kernel{1 << 12, 16},
        Kernel{1 << 11, 64}, Kernel{1 << 10, 64}}) {
    const int blocks = kernel.blocks, rounds = kernel.rounds;
    SCOPED_TRACE(testing::Message() << blocks << " blocks of " << rounds << " rounds");
    const std::uint64_t bytes = sizeof(float) * kManyBlocksThreads * blocks;
    ASSERT_OK_AND_ASSIGN(const auto buffer, device.Allocate(bytes));
    ASSERT_THAT(device.Fill(buffer->data(), std::byte{0}, bytes), IsOk());
    const auto many = [&]() -> absl::Status {
      return CudaStatus(LaunchManyBlocks(reinterpret_cast<float*>(buffer->data()), blocks, rounds,
                                         StreamOf(device)),
                        "many blocks");
    };
    const double device_time = MedianBy(device, Method::kDeviceTime, many, 31);
    const double isolated = MedianBy(device, Method::kIsolated, many, 31);
    const double slope = MedianBy(device, Method::kBackToBack, many, 5);
    std::printf("%d blocks, %d rounds: device time %.1f, isolated %.1f, slope %.1f us\n", blocks,
                rounds, device_time / 1e3, isolated / 1e3, slope / 1e3);
    const double agree = std::max(500.0, 0.03 * device_time);
    // Of short kernels that is more than what stamps of blocks add: H200, of 2^12 blocks 0.4 us.
    constexpr double kWithoutStampsNs = 300;
    const bool is_short = blocks <= 1 << 14;
    EXPECT_LE(std::abs(isolated - device.info().launch_offset_ns - device_time),
              is_short ? kWithoutStampsNs : agree);
    EXPECT_LE(std::abs(slope - device_time), agree);
  }
}

TEST(CudaTiming, TheHostsClockTeachesWhatItMisses) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const auto spin = Spin(device, 500'000);
  const double no_sync = MedianBy(device, Method::kHostNoSync, spin, 11);
  const double sync = MedianBy(device, Method::kHostSync, spin, 11);
  std::printf("a spin of 500 us: host_no_sync %.1f us, host_sync %.1f us\n", no_sync / 1e3,
              sync / 1e3);
  EXPECT_LT(no_sync, 250e3);
  EXPECT_GT(sync, 500e3);
}

TEST(CudaTiming, ALaunchOfSeveralKernelsIsOneSpanAndLists) {
  SKIP_WITHOUT_CUPTI();
  Device& device = TheGpu();
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.Allocate(1 << 20));
  const auto three = [&]() -> absl::Status {
    const cudaStream_t stream = StreamOf(device);
    GC_RETURN_IF_CUDA_ERROR(LaunchSpin(20'000, stream), "spin");
    GC_RETURN_IF_CUDA_ERROR(LaunchSpin(20'000, stream), "spin");
    return CudaStatus(cudaMemsetAsync(buffer->data(), 0, 1 << 20, stream), "fill");
  };
  device.NewLaunch();
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(const TimedLaunch timed, device.Time(Method::kDeviceTime, three));
    ASSERT_THAT(timed.kernels, SizeIs(2));
    EXPECT_THAT(timed.kernels[0].name, HasSubstr("SpinKernel"));
    EXPECT_EQ(timed.kernels[0].count, 2);
    EXPECT_EQ(timed.kernels[1].name, "memset");
    EXPECT_GT(timed.duration_ns, 40'000);
    if (i == 0) continue;  // It is not known yet that there are several.
    EXPECT_LT(timed.duration_ns, 60'000) << "the host's pace is in it";
  }
}

TEST(CudaTiming, RecordsOfOtherLaunchesAreNotCounted) {
  SKIP_WITHOUT_CUPTI();
  Device& device = TheGpu();
  device.NewLaunch();
  for (int i = 0; i < 5; ++i) {
    // Recording is on from the first round: what is launched here is recorded, and not ours.
    ASSERT_THAT(Spin(device, 300'000)(), IsOk());
    ASSERT_THAT(device.PrepareCache(L2State::kColdDirty), IsOk());
    ASSERT_OK_AND_ASSIGN(const TimedLaunch timed,
                         device.Time(Method::kDeviceTime, Spin(device, 30'000)));
    ASSERT_THAT(timed.kernels, SizeIs(1));
    EXPECT_EQ(timed.kernels[0].count, 1);
    EXPECT_NEAR(timed.duration_ns, 31'000, 3'000);
  }
}

TEST(CudaTiming, ALaunchThatPutsNothingOnTheDeviceHasNoDeviceTime) {
  SKIP_WITHOUT_CUPTI();
  const auto nothing = [] { return absl::OkStatus(); };
  TheGpu().NewLaunch();
  EXPECT_THAT(TheGpu().Time(Method::kDeviceTime, nothing),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no record")));
  EXPECT_THAT(TheGpu().Time(Method::kBackToBack, nothing),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nothing")));
}

TEST(CudaTiming, ALaunchThatSynchronisesCannotBeCapturedAndSaysSo) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const auto waits = [&]() -> absl::Status {
    GC_RETURN_IF_CUDA_ERROR(LaunchSpin(1000, StreamOf(device)), "spin");
    return CudaStatus(cudaStreamSynchronize(StreamOf(device)), "wait");
  };
  device.NewLaunch();
  const auto timed = device.Time(Method::kBackToBack, waits);
  EXPECT_THAT(timed.status(), ReasonIs("NOT_CAPTURABLE"));
  EXPECT_FALSE(device.poisoned());
  // Also where the launch says something else of it.
  const auto vague = [&] { return waits().ok() ? absl::OkStatus() : absl::InternalError("wait"); };
  device.NewLaunch();
  EXPECT_THAT(device.Time(Method::kBackToBack, vague).status(), ReasonIs("NOT_CAPTURABLE"));
  device.NewLaunch();
  EXPECT_THAT(device.Time(Method::kBackToBack, Spin(device, 1000)), IsOk());
}

TEST(CudaTiming, ASlopeTellsHowManyLaunchesItTook) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  std::int64_t launched = 0;
  const auto counted = [&] {
    ++launched;
    return CudaStatus(LaunchSpin(300'000, StreamOf(device)), "spin");
  };
  device.NewLaunch();
  ASSERT_OK_AND_ASSIGN(const TimedLaunch first, device.Time(Method::kBackToBack, counted));
  // Graphs of one and of four: three launches to see how long one is, a run of each graph that does
  // not count, and one that does.
  EXPECT_EQ(launched, 3 + 1 + 4);
  EXPECT_EQ(first.launches, 3 + 2 * (1 + 4));
  ASSERT_OK_AND_ASSIGN(const TimedLaunch second, device.Time(Method::kBackToBack, counted));
  EXPECT_EQ(second.launches, 1 + 4);
}

TEST(CudaTiming, ALaunchThatWaitsForTheDeviceEndsTheBlockingKernelByItsLimit) {
  SKIP_WITHOUT_GPU();
  cudaStream_t stream = StreamOf(TheGpu());
  ASSERT_OK_AND_ASSIGN(GpuTimer timer,
                       GpuTimer::Create({.stream = stream, .block_limit_ns = 20'000'000}));
  const absl::Time start = absl::Now();
  EXPECT_THAT(timer.Isolated([&]() -> absl::Status {
    GC_RETURN_IF_CUDA_ERROR(LaunchSpin(1000, stream), "spin");
    return CudaStatus(cudaStreamSynchronize(stream), "wait");
  }),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("not queued within 20 ms")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  // The next is timed as ever.
  ASSERT_OK_AND_ASSIGN(const double ns, timer.Isolated([&] {
    return CudaStatus(LaunchSpin(50'000, stream), "spin");
  }));
  EXPECT_NEAR(ns, 53'000, 4'000);
}

// A plain sweep is no proof that nothing of the set is left: the L2 is hashed, in two halves, and
// does not replace its lines by age alone. So a longer sweep must not make it any colder.
TEST(CudaTiming, AColdCacheIsAsColdAsALongerSweepMakesIt) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const Method method = Has(device, Method::kDeviceTime) ? Method::kDeviceTime : Method::kIsolated;
  const std::uint64_t l2 = device.info().l2_bytes & ~std::uint64_t{15}, bytes = l2 / 4 & ~15ULL;
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.Allocate(bytes));
  ASSERT_OK_AND_ASSIGN(const auto others, device.Allocate(8 * l2));
  ASSERT_THAT(device.Fill(buffer->data(), std::byte{1}, bytes), IsOk());
  ASSERT_THAT(device.Fill(others->data(), std::byte{1}, 8 * l2), IsOk());
  const auto state = [&](L2State wanted) {
    return [&, wanted] { return device.PrepareCache(wanted); };
  };
  const auto sweep = [&](std::uint64_t times) {
    return [&, times] {
      return CudaStatus(LaunchSweepRead(others->data(), times * l2, 1,
                                        static_cast<int>(device.info().units), StreamOf(device)),
                        "sweep");
    };
  };
  const std::pair<const char*, std::function<absl::Status()>> kinds[] = {
      {"hot", state(L2State::kHot)},
      {"cold and clean", state(L2State::kColdClean)},
      {"cold and dirty", state(L2State::kColdDirty)},
      {"2 x L2 swept", sweep(2)},
      {"4 x L2 swept", sweep(4)},
      {"8 x L2 swept", sweep(8)}};
  const auto read = [&] {
    return CudaStatus(LaunchRead(buffer->data(), bytes, StreamOf(device)), "read");
  };
  constexpr int kReads = 31;
  std::map<std::string, double> median;
  for (const auto& [name, prepare] : kinds) {
    std::vector<double> samples;
    device.NewLaunch();
    for (int i = 0; i < kReads; ++i) {
      ASSERT_THAT(prepare(), IsOk());
      ASSERT_THAT(device.Synchronize(), IsOk());
      ASSERT_OK_AND_ASSIGN(const TimedLaunch timed, device.Time(method, read));
      samples.push_back(timed.duration_ns);
    }
    std::sort(samples.begin(), samples.end());
    median[name] = samples[kReads / 2];
    std::printf("read of %.1f MiB, %s: %.2f us\n", static_cast<double>(bytes) / (1 << 20), name,
                median[name] / 1e3);
  }
  const double coldest = median["8 x L2 swept"];
  EXPECT_GT(coldest, 1.15 * median["hot"]);
  EXPECT_NEAR(median["2 x L2 swept"], coldest, 0.03 * coldest);
  EXPECT_NEAR(median["4 x L2 swept"], coldest, 0.03 * coldest);
  EXPECT_NEAR(median["cold and clean"], coldest, 0.03 * coldest);
  EXPECT_GE(median["cold and dirty"], median["cold and clean"] - device.info().clock_step_ns);
}

absl::StatusOr<Measurement> MeasureQuietly(Device& device, Method method,
                                           absl::FunctionRef<absl::Status()> launch) {
  const MonotonicClock clock;
  return Measure(device, {.method = method, .budget = absl::Milliseconds(300), .schedule = {}},
                 {.launch = launch, .prepare = [] { return absl::OkStatus(); }},
                 {.clock = clock,
                  .cancelled = [] { return false; },
                  .yields = [] { return false; },
                  .on_samples = [](std::int64_t, std::span<const double>, bool) {}});
}

struct Several {
  int kernels = 0, copies = 0;
  std::uint64_t span_ns = 0;  // Of each kernel.
};

// What a launch of a copy and a few kernels is off by shows in the offsets.
TEST(CudaTiming, AMeasurementOfSeveralLaunchesIsNotSuspect) {
  SKIP_WITHOUT_CUPTI();
  Device& device = TheGpu();
  constexpr std::size_t kBytes = 48 << 10;
  ASSERT_OK_AND_ASSIGN(const auto to, device.Allocate(kBytes));
  void* memory = nullptr;
  ASSERT_EQ(cudaHostAlloc(&memory, kBytes, cudaHostAllocDefault), cudaSuccess);
  const CudaHostMemory from(memory);
  const Several cases[] = {{1, 0, 100'000},  {2, 0, 20'000},  {4, 0, 20'000},  {16, 0, 10'000},
                           {16, 0, 100'000}, {1, 1, 200'000}, {1, 1, 100'000}, {2, 2, 200'000}};
  for (const Several& several : cases) {
    const auto launch = [&]() -> absl::Status {
      for (int i = 0; i < std::max(several.kernels, several.copies); ++i) {
        if (i < several.copies) {
          GC_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to->data(), from.get(), kBytes,
                                                  cudaMemcpyHostToDevice, StreamOf(device)),
                                  "copy");
        }
        if (i < several.kernels) GC_RETURN_IF_ERROR(Spin(device, several.span_ns)());
      }
      return absl::OkStatus();
    };
    for (const Method method : {Method::kIsolated, Method::kDeviceTime, Method::kBackToBack}) {
      ASSERT_OK_AND_ASSIGN(const Measurement m, MeasureQuietly(device, method, launch));
      ASSERT_TRUE(m.timing.second);
      const bool suspect = std::count(m.flags.begin(), m.flags.end(), Flag::kSuspect) > 0;
      std::printf(
          "%2d kernels of %3.0f us, %d copies, method %d: %10.3f us, second opinion %10.3f%s\n",
          several.kernels, static_cast<double>(several.span_ns) / 1e3, several.copies,
          static_cast<int>(method), m.timing.statistics.median / 1e3,
          m.timing.second->median_ns / 1e3, suspect ? " SUSPECT" : "");
      EXPECT_FALSE(suspect);
    }
  }
}

TEST(CudaTiming, AMeasurementByEachMethodIsNotSuspect) {
  SKIP_WITHOUT_GPU();
  constexpr double kFlatWithin = 0.01;  // Of docs/timing.md.
  Device& device = TheGpu();
  for (const std::uint64_t span : {2'000, 20'000, 2'000'000}) {
    for (const Method method : {Method::kIsolated, Method::kDeviceTime, Method::kBackToBack}) {
      if (!Has(device, method)) continue;
      ASSERT_OK_AND_ASSIGN(const Measurement m, MeasureQuietly(device, method, Spin(device, span)));
      std::string flags;
      for (const Flag flag : m.flags) flags += " " + std::to_string(static_cast<int>(flag));
      std::printf(
          "spin %8.0f us, method %d: median %10.3f us, second opinion %10.3f us, %4zu "
          "samples after %4ld warm-ups, flat %d, stop %d, floor %.0f ns, flags%s\n",
          static_cast<double>(span) / 1e3, static_cast<int>(method),
          m.timing.statistics.median / 1e3,
          m.timing.second ? m.timing.second->median_ns / 1e3 : 0.0, m.timing.samples_ns.size(),
          static_cast<long>(m.timing.warmups), m.timing.warmup_flat,
          static_cast<int>(m.timing.stop), m.timing.method_floor_ns, flags.c_str());
      EXPECT_THAT(m.flags, Not(Contains(Flag::kSuspect)));
      // A spin ends with a step of the GPU's timer, and what times it has steps of its own: of 2 us
      // both together are more than what counts as flat. Its times are near them, and it says so.
      const double steps = device.info().device_timer_step_ns + device.info().clock_step_ns;
      const bool coarse = steps > kFlatWithin * static_cast<double>(span);
      const Statistics& times = m.timing.statistics;
      const bool says_so = std::count(m.flags.begin(), m.flags.end(), Flag::kNoisy) > 0;
      EXPECT_TRUE(m.timing.warmup_flat || (coarse && says_so && times.q3 - times.q1 <= 2 * steps))
          << span << ": quartiles " << times.q1 << " and " << times.q3;
      if (method != Method::kBackToBack && Has(device, Method::kDeviceTime)) {
        EXPECT_TRUE(m.timing.second);
        EXPECT_THAT(m.kernels, SizeIs(1));
      }
    }
  }
}

}  // namespace
}  // namespace gridclock
