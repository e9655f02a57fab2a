#include "kernels/device/cpu/cpu_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "absl/time/clock.h"
#include "base/mutex.h"
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

std::vector<int> CpusOfThisThread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Where each thread that took a part of one region may run.
std::map<std::thread::id, std::vector<int>> CpusInARegion(TbbThreads& threads) {
  std::map<std::thread::id, std::vector<int>> seen;
  Mutex mutex;
  threads.ParallelFor(threads.count(), 1, [&](std::int64_t, std::int64_t) {
    // Time for the others to come, or this thread takes all parts.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    MutexLock lock(mutex);
    seen[std::this_thread::get_id()] = CpusOfThisThread();
  });
  return seen;
}

TEST(TbbThreads, HaveACpuEachWhereTheyAreAsManyAsTheCpus) {
  const std::vector<int> all = CpusOfThisThread();
  if (all.size() < 2) GTEST_SKIP() << "one CPU alone";
  TbbThreads threads(static_cast<int>(all.size()));
  // On a busy machine one thread may take all parts before another comes.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  for (std::size_t most = 0; most < 2;) {
    ASSERT_LT(absl::Now(), deadline) << "no region had two threads";
    std::vector<int> taken;
    for (const auto& [thread, cpus] : CpusInARegion(threads)) {
      ASSERT_THAT(cpus, testing::SizeIs(1));
      EXPECT_THAT(taken, testing::Not(testing::Contains(cpus.front())));
      taken.push_back(cpus.front());
    }
    most = std::max(most, taken.size());
    EXPECT_EQ(CpusOfThisThread(), all);
  }
}

TEST(TbbThreads, RunAnywhereWhereTheyAreMoreThanTheCpus) {
  const std::vector<int> all = CpusOfThisThread();
  TbbThreads threads(static_cast<int>(all.size()) + 1);
  for (const auto& [thread, cpus] : CpusInARegion(threads)) EXPECT_EQ(cpus, all);
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

// Held against a clock of the launch's own; the least of many, as others run beside it.
TEST(CpuDevice, ATimeHoldsTheLaunchAndNearlyNothingElse) {
  const auto device = MakeDevice(1);
  for (const Method method : device->methods()) {
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 50; ++i) {
      double inner = 0;
      const auto spin = [&] {
        const auto start = std::chrono::steady_clock::now();
        while (inner < 1e6) {
          inner = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
                      .count();
        }
        return absl::OkStatus();
      };
      ASSERT_OK_AND_ASSIGN(const TimedLaunch timed, device->Time(method, spin));
      EXPECT_GE(timed.duration_ns, inner);
      least = std::min(least, timed.duration_ns - inner);
    }
    EXPECT_LT(least, 100e3) << static_cast<int>(method);
  }
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
  EXPECT_EQ(device->RooflineOf({.bytes = 1 << 20, .flops = 1 << 20}, L2State::kHot).ns, 0);
}

TEST(CpuDevice, EmptyingTheCachesLeavesThreadsFreeToMove) {
  const auto device = MakeDevice(2);
  const std::vector<int> before = AffinityCpus();
  EXPECT_THAT(device->PrepareCache(L2State::kColdClean), IsOk());
  EXPECT_EQ(AffinityCpus(), before);
}

TEST(CpuDeviceTest, ListsItsMethodsWithTheirFloor) {
  ASSERT_OK_AND_ASSIGN(const auto device, CpuDevice::Create({.threads = 1, .calibrate = false}));
  std::vector<Method> listed;
  for (const MethodFacts& facts : device->info().methods) {
    listed.push_back(facts.method);
    EXPECT_EQ(facts.floor_ns, device->info().launch_floor_ns);
    EXPECT_EQ(facts.missing, "");
  }
  EXPECT_THAT(listed, testing::ElementsAreArray(device->methods()));
}

}  // namespace
}  // namespace gridclock
