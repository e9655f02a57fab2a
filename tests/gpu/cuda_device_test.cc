// Memory, copies, errors and conditions of the CUDA device, on a real one.
#include "kernels/device/cuda/cuda_device.h"

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "kernels/device/cuda/facts.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(CudaDevices, OneThatIsNotThereIsRefusedWithWhatThereIs) {
  SKIP_WITHOUT_GPU();
  EXPECT_THAT(CudaDevice::Create({.ordinal = 99}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("want cuda:99"), HasSubstr("cuda:0 ("))));
  EXPECT_THAT(CudaDevice::Create({.uuid = "GPU-0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("want GPU-0")));
}

TEST(CudaDevice, HasFacts) {
  SKIP_WITHOUT_GPU();
  const DeviceInfo& info = TheGpu().info();
  std::printf(
      "%s: %s, compute capability %.1f, %ld SMs, %.1f GiB, L2 %.1f MiB, SM %.0f MHz, "
      "memory %.0f MHz, driver %s, CUDA %s, partition '%s'\n",
      info.name.c_str(), info.model.c_str(), static_cast<double>(info.traits.sm) / 10,
      static_cast<long>(info.units), static_cast<double>(info.memory_bytes) / (1 << 30),
      static_cast<double>(info.l2_bytes) / kMiB, info.sm_clock_hz / 1e6, info.memory_clock_hz / 1e6,
      info.driver.c_str(), info.cuda.c_str(), info.partition.c_str());
  for (const FlopRate& rate : info.flop_rates) {
    std::printf("  %.*s: %.1f TFLOP/s by the data sheet\n",
                static_cast<int>(Name(rate.dtype).size()), Name(rate.dtype).data(),
                rate.flops_per_second / 1e12);
  }
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_EQ(info.traits.kind, "cuda");
  EXPECT_GE(info.traits.sm, 75);
  EXPECT_THAT(info.uuid, HasSubstr("-"));
  EXPECT_GT(info.units, 0);
  EXPECT_GT(info.memory_bytes, 1024 * kMiB);
  EXPECT_GT(info.l2_bytes, kMiB / 2);
  EXPECT_GT(info.sm_clock_hz, 5e8);
  EXPECT_THAT(info.cuda, Not(IsEmpty()));
  EXPECT_FALSE(info.host_memory);
  EXPECT_FALSE(TheGpu().uses_host_memory());
}

TEST(CudaDevice, KeepsToItsBudgetAndWorksOnAfterIt) {
  SKIP_WITHOUT_GPU();
  ASSERT_OK_AND_ASSIGN(const auto device,
                       CudaDevice::Create({.memory_limit = 64 * kMiB, .bare = true}));
  ASSERT_OK_AND_ASSIGN(auto most, device->Allocate(60 * kMiB));
  EXPECT_THAT(device->Allocate(8 * kMiB),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of 67108864 are free")));
  EXPECT_THAT(device->Fill(most->data(), std::byte{3}, most->size()), IsOk());
  EXPECT_THAT(device->Synchronize(), IsOk());
  most = nullptr;
  EXPECT_THAT(device->Allocate(64 * kMiB), IsOk());
  EXPECT_FALSE(device->poisoned());
}

TEST(CudaDevice, MakesValuesToTheBitAsTheHostDoes) {
  SKIP_WITHOUT_GPU();
  constexpr std::int64_t kCount = 1'000'003, kFirst = (std::int64_t{1} << 32) - 500;
  Device& device = TheGpu();
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.Allocate(kCount * sizeof(double)));
  std::vector<std::byte> made(kCount * sizeof(double)), wanted(made.size());
  for (const char* text : {"zeros", "ones", "full:-2.75", "arange", "randn", "uniform:-300:3e5",
                           "randint:0:2", "randint:-100:100"}) {
    ASSERT_OK_AND_ASSIGN(Generator generator, ParseGenerator(text));
    generator.seed = 0xFEDCBA9876543210;
    for (const DType dtype : AllDTypes()) {
      if (!Validate(generator, dtype).ok()) continue;  // -100 is no u8.
      const auto bytes = static_cast<std::size_t>(kCount * SizeOf(dtype));
      Generate(generator, dtype, kFirst, std::span(wanted).first(bytes));
      ASSERT_THAT(device.Generate(generator, dtype, kFirst, kCount, buffer->data()), IsOk());
      ASSERT_THAT(device.CopyOut(std::span(made).first(bytes), buffer->data()), IsOk());
      ASSERT_THAT(device.Synchronize(), IsOk());
      EXPECT_EQ(std::memcmp(made.data(), wanted.data(), bytes), 0) << text << " " << Name(dtype);
    }
  }
}

TEST(CudaDevice, G2_G5_MoreThanTheGpuHasIsRefusedWithTheNumbers) {
  SKIP_WITHOUT_GPU();
  EXPECT_THAT(TheGpu().Allocate(std::uint64_t{1} << 50),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("want 1125899906842624")));
  EXPECT_THAT(TheGpu().Allocate(kMiB), IsOk());
}

TEST(CudaDevice, CopiesComeBackAsTheyWent) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  constexpr std::uint64_t kBytes = 3 * kMiB + 7;
  std::vector<std::byte> sent(kBytes), back(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::byte>(i * 31 + (i >> 9));
  ASSERT_OK_AND_ASSIGN(const auto first, device.Allocate(kBytes));
  ASSERT_OK_AND_ASSIGN(const auto second, device.Allocate(kBytes));
  EXPECT_THAT(device.CopyIn(first->data(), sent), IsOk());
  EXPECT_THAT(device.Copy(second->data(), first->data(), kBytes), IsOk());
  EXPECT_THAT(device.Fill(first->data(), std::byte{0x7B}, kBytes), IsOk());
  EXPECT_THAT(device.CopyOut(back, second->data()), IsOk());
  EXPECT_THAT(device.Synchronize(), IsOk());
  EXPECT_TRUE(sent == back);
  EXPECT_THAT(device.CopyOut(std::span(back).first(16), first->data()), IsOk());
  EXPECT_THAT(device.Synchronize(), IsOk());
  EXPECT_EQ(back[15], std::byte{0x7B});
  EXPECT_EQ(back[16], sent[16]);
}

// As the server's arena is: one memfd that two processes map.
TEST(CudaDevice, PinnedMemoryIsCopiedAcrossItsPiecesAtSpeed) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  constexpr std::size_t kBytes = 200 * kMiB;
  const int fd = memfd_create("arena", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  auto* const arena =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ASSERT_NE(static_cast<void*>(arena), MAP_FAILED);
  ASSERT_THAT(device.RegisterHost({arena, kBytes}), IsOk());
  for (std::size_t i = 0; i < kBytes; i += 997) arena[i] = static_cast<std::byte>(i >> 12);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device.Allocate(kBytes));
  const std::span<std::byte> all(arena, kBytes);
  for (int round = 0; round < 2; ++round) {
    const absl::Time start = absl::Now();
    ASSERT_THAT(device.CopyIn(buffer->data(), all), IsOk());
    ASSERT_THAT(device.Synchronize(), IsOk());
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    std::printf("copy in of 200 MiB, %s: %.1f GB/s\n", round == 0 ? "pinning it" : "pinned",
                1e-9 * kBytes / seconds);
  }
  std::memset(arena, 0, kBytes);
  // Not from the beginning, and across pieces.
  ASSERT_THAT(
      device.CopyOut(all.subspan(5, kBytes - 5), static_cast<std::byte*>(buffer->data()) + 5),
      IsOk());
  ASSERT_THAT(device.Synchronize(), IsOk());
  for (std::size_t i = 997; i < kBytes; i += 997) {
    ASSERT_EQ(arena[i], static_cast<std::byte>(i >> 12)) << i;
  }
  // The device outlives the test, so the mapping must stay.
}

TEST(CudaDevice, G2_ALaunchBeyondItsLimitsIsRefusedAndHarmsNothing) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const auto too_large = [&] { return CudaStatus(LaunchTooLarge(StreamOf(device)), "launch"); };
  // Which of the two names drivers give it differs. A shape of submitted code never comes to them:
  // submit_test.
  EXPECT_THAT(device.Time(Method::kIsolated, too_large).status(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("launch: cudaErrorInvalid")));
  EXPECT_FALSE(device.poisoned());
  EXPECT_THAT(device.Time(Method::kIsolated, Spin(device, 1000)), IsOk());
}

TEST(CudaDevice, ARefusedLaunchThatDoesNotSaySoIsNotTimedAndNotTheNextOnesError) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const auto refused = StatusIs(absl::StatusCode::kInternal, HasSubstr("launch: cudaErrorInvalid"));
  const auto silent = [&] {
    LaunchTooLargeInSilence(StreamOf(device));
    return absl::OkStatus();
  };
  for (const Method method : device.methods()) {
    device.NewLaunch();
    EXPECT_THAT(device.Time(method, silent).status(), refused) << static_cast<int>(method);
    EXPECT_THAT(device.Synchronize(), IsOk());
  }
  EXPECT_THAT(silent(), IsOk());
  EXPECT_THAT(device.Synchronize(), refused);
  EXPECT_THAT(device.Synchronize(), IsOk());
  EXPECT_FALSE(device.poisoned());
}

TEST(CudaDevice, GivesUpWhatEmptiesTheCacheWhereAnOperandWantsItsMemory) {
  SKIP_WITHOUT_GPU();
  const std::uint64_t limit = 3 * TheGpu().info().l2_bytes;
  ASSERT_OK_AND_ASSIGN(const auto device,
                       CudaDevice::Create({.memory_limit = limit, .bare = true}));
  ASSERT_THAT(device->PrepareCache(L2State::kColdClean), IsOk());
  EXPECT_THAT(device->Allocate(limit / 8 * 7), IsOk());
  EXPECT_THAT(device->PrepareCache(L2State::kColdClean), IsOk());
}

// As much of it as it took, not only what was asked for.
TEST(CudaDevice, G7_ClearsWhatItTakesFromTheDriverForSubmittedCode) {
  SKIP_WITHOUT_GPU();
  ASSERT_OK_AND_ASSIGN(const auto device, CudaDevice::Create({.clear_memory = true, .bare = true}));
  constexpr std::uint64_t kAsked = 61 * kMiB + 1, kTaken = 62 * kMiB;
  for (int i = 0; i < 3; ++i) {
    device->GiveBack(0);
    ASSERT_OK_AND_ASSIGN(const auto buffer, device->Allocate(kAsked));
    std::vector<std::byte> found(kTaken, std::byte{1});
    ASSERT_THAT(device->CopyOut(found, buffer->data()), IsOk());
    ASSERT_THAT(device->Synchronize(), IsOk());
    EXPECT_EQ(std::count(found.begin(), found.end(), std::byte{0}), std::ssize(found));
    ASSERT_THAT(device->Fill(buffer->data(), std::byte{0xAB}, kTaken), IsOk());
    ASSERT_THAT(device->Synchronize(), IsOk());
  }
}

TEST(CudaDevice, SetsNoLinesOfTheL2Aside) {
  SKIP_WITHOUT_GPU();
  ASSERT_GT(TheGpu().info().l2_bytes, 0U);
  std::size_t persisting = 1;
  ASSERT_EQ(cudaDeviceGetLimit(&persisting, cudaLimitPersistingL2CacheSize), cudaSuccess);
  EXPECT_EQ(persisting, 0U);
}

TEST(CudaDevice, G6_GivesBackWhatItKept) {
  SKIP_WITHOUT_GPU();
  ASSERT_OK_AND_ASSIGN(const auto device, CudaDevice::Create({.bare = true}));
  ASSERT_THAT(device->Allocate(256 * kMiB), IsOk());
  EXPECT_EQ(device->kept_bytes(), 256 * kMiB);
  device->GiveBack(kMiB);
  EXPECT_EQ(device->kept_bytes(), 0U);
  EXPECT_FALSE(device->MayGetMemory(256 * kMiB)) << "it is alone: nobody gives anything back";
  EXPECT_TRUE(TheGpu().MayGetMemory(256 * kMiB)) << "there are no others, but there might be";
  EXPECT_FALSE(TheGpu().MayGetMemory(~std::uint64_t{0}));
}

TEST(CudaDevice, AMethodThatItLacksIsRefusedWithTheReason) {
  SKIP_WITHOUT_GPU();
  ASSERT_OK_AND_ASSIGN(const auto bare, CudaDevice::Create({.bare = true}));
  EXPECT_THAT(bare->Time(Method::kIsolated, Spin(*bare, 1000)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bare")));
  EXPECT_FALSE(Has(*bare, Method::kDeviceTime));
  ASSERT_OK_AND_ASSIGN(const TimedLaunch timed,
                       bare->Time(Method::kEventPair, Spin(*bare, 1'000'000)));
  EXPECT_GT(timed.duration_ns, 0.99e6);
}

// A fault ends the process that makes it, so each is made in a process of its own, which tells by
// its exit what it saw.
void FaultAndTell(cudaError_t (*fault)(cudaStream_t), const char* name) {
  auto made = CudaDevice::Create({.bare = true});
  if (!made.ok()) _exit(10);
  Device& device = **made;
  const auto launch = [&] { return CudaStatus(fault(StreamOf(device)), "launch"); };
  const auto timed = device.Time(Method::kEventPair, launch);
  const auto is_fault = [&](const absl::Status& status) {
    return status.code() == absl::StatusCode::kFailedPrecondition &&
           DetailsOf(status).reason == "KERNEL_FAULT" &&
           std::string(status.message()).find(name) != std::string::npos;
  };
  if (!is_fault(timed.status())) _exit(11);
  if (!device.poisoned()) _exit(12);
  std::byte byte{};
  if (!is_fault(device.Synchronize())) _exit(13);
  if (!is_fault(device.CopyIn(&byte, {&byte, 1}))) _exit(14);
  if (!is_fault(device.Allocate(1).status())) _exit(15);
  if (!is_fault(device.PrepareCache(L2State::kColdClean))) _exit(16);
  if (!is_fault(device.Time(Method::kEventPair, launch).status())) _exit(17);
  _exit(0);
}

TEST(CudaDeviceFaultDeathTest, AnIllegalAddressPoisonsAndLaterCallsSaySo) {
  SKIP_WITHOUT_GPU();
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(FaultAndTell(&LaunchIllegalWrite, "cudaErrorIllegalAddress (700)"),
              ::testing::ExitedWithCode(0), "");
}

TEST(CudaDeviceFaultDeathTest, AFailedAssertPoisonsAndLaterCallsSaySo) {
  SKIP_WITHOUT_GPU();
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(FaultAndTell(&LaunchFailedAssert, "cudaErrorAssert (710)"),
              ::testing::ExitedWithCode(0), "");
}

// Started by the next test, as another process.
TEST(CudaDeviceOther, DISABLED_HoldsTheGpuUntilItIsKilled) {
  ASSERT_OK_AND_ASSIGN(const auto device, CudaDevice::Create({.bare = true}));
  for (;;) {
    if (!device->Time(Method::kEventPair, Spin(*device, 2'000'000)).ok()) return;
  }
}

pid_t StartOther() {
  const pid_t child = fork();
  if (child != 0) return child;
  execl("/proc/self/exe", "cuda_device_test", "--gtest_also_run_disabled_tests",
        "--gtest_filter=CudaDeviceOther.*", nullptr);
  _exit(127);
}

TEST(CudaDevice, SeesAnotherProcessOnTheGpu) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  device.Observe();
  const Conditions alone = device.Observe();
  if (alone.sharing_unknown) GTEST_SKIP() << "pids are hidden here: sharing is unknown";
  EXPECT_FALSE(alone.shared) << "somebody else uses this GPU";
  const pid_t child = StartOther();
  Conditions conditions;
  for (int i = 0; i < 100 && !conditions.shared; ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    conditions = device.Observe();
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(conditions.shared);
}

TEST(CudaDevice, HandsOnNoCalibrationThatWasTakenBesideAnotherProcess) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  if (device.Observe().sharing_unknown) GTEST_SKIP() << "pids are hidden here: sharing is unknown";
  const pid_t child = StartOther();
  bool shared = false;
  for (int i = 0; i < 100 && !shared; ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    shared = device.Observe().shared;
  }
  ASSERT_OK_AND_ASSIGN(const auto beside, CudaDevice::Create({}));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(shared);
  EXPECT_EQ(beside->CalibrationText(), "");
  EXPECT_GT(beside->info().launch_floor_ns, 0) << "it has one for itself";
}

// How many words of shared memory, of those that `blocks` blocks can have, are not `word`.
std::uint32_t OtherWords(Device& device, std::uint32_t word, int bytes, int blocks) {
  const auto count = *device.Allocate(sizeof(std::uint32_t));
  std::uint32_t others = 0;
  EXPECT_THAT(device.Fill(count->data(), std::byte{0}, sizeof(others)), IsOk());
  EXPECT_THAT(
      CudaStatus(LaunchCountOthers(word, bytes, blocks, static_cast<std::uint32_t*>(count->data()),
                                   StreamOf(device)),
                 "count"),
      IsOk());
  EXPECT_THAT(device.CopyOut(std::as_writable_bytes(std::span(&others, 1)), count->data()), IsOk());
  EXPECT_THAT(device.Synchronize(), IsOk());
  return others;
}

TEST(CudaDevice, FillsSharedMemoryOnAllMultiprocessors) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  const int bytes = Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  const int blocks = 2 * static_cast<int>(device.info().units);
  const auto all = static_cast<std::uint32_t>(blocks) * (static_cast<std::uint32_t>(bytes) / 4);
  constexpr std::uint32_t kFirst = 0x12345678, kSecond = 0x9ABCDEF0;
  ASSERT_THAT(device.FillShared(kFirst), IsOk());
  if (OtherWords(device, kFirst, bytes, blocks) == all) {
    GTEST_SKIP() << "nothing is left in shared memory here";
  }
  EXPECT_EQ(OtherWords(device, kFirst, bytes, blocks), 0U);
  ASSERT_THAT(device.FillShared(kSecond), IsOk());
  EXPECT_EQ(OtherWords(device, kSecond, bytes, blocks), 0U);
  EXPECT_EQ(OtherWords(device, kFirst, bytes, blocks), all);
}

TEST(CudaDevice, TellsItsClockItsPowerAndItsHeat) {
  SKIP_WITHOUT_GPU();
  Device& device = TheGpu();
  device.Observe();
  MedianBy(device, Method::kIsolated, Spin(device, 10'000'000), 20);
  const Conditions conditions = device.Observe();
  if (!conditions.state) GTEST_SKIP() << "no NVML here";
  std::string reasons;
  for (const std::string& reason : conditions.state->clock_reasons) reasons += reason + " ";
  std::printf("SM %.0f MHz, memory %.0f MHz, %.0f W, %.0f C, reasons: %sthrottled: %d\n",
              conditions.state->sm_clock_hz / 1e6, conditions.state->memory_clock_hz / 1e6,
              conditions.state->power_watts, conditions.state->temperature_celsius, reasons.c_str(),
              conditions.throttled);
  EXPECT_GT(conditions.state->sm_clock_hz, 1e8);
  // What is measured and what the driver tells are of one clock.
  EXPECT_NEAR(device.ClockHz(), conditions.state->sm_clock_hz,
              0.05 * conditions.state->sm_clock_hz);
  const double used = static_cast<double>(conditions.state->memory_used_bytes);
  const double free = static_cast<double>(conditions.state->memory_free_bytes);
  EXPECT_GT(used, 0);
  EXPECT_NEAR(used + free, static_cast<double>(device.info().memory_bytes),
              0.05 * static_cast<double>(device.info().memory_bytes));
}

}  // namespace
}  // namespace gridclock
