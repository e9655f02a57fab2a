#include "kernels/device/cpu/host.h"

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_root.h"

namespace gridclock {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<int> FirstCpus(int count) {
  std::vector<int> cpus(static_cast<std::size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// `caches` last-level caches of `size`, each of two neighbouring CPUs with 1 MiB of L2.
void WriteServer(const FakeRoot& root, int caches, const std::string& size) {
  for (int cpu = 0; cpu < caches * 2; ++cpu) {
    const int first = cpu / 2 * 2;
    root.WriteCache(cpu, 0, 1, "Data", "32K", std::to_string(cpu));
    root.WriteCache(cpu, 1, 1, "Instruction", "64K", std::to_string(cpu));
    root.WriteCache(cpu, 2, 2, "Unified", "1024K", std::to_string(cpu));
    root.WriteCache(cpu, 3, 3, "Unified", size,
                    std::to_string(first) + "-" + std::to_string(first + 1));
  }
}

std::uint64_t Total(const std::vector<FlushShare>& plan) {
  std::uint64_t bytes = 0;
  for (const FlushShare& share : plan) bytes += share.bytes;
  return bytes;
}

TEST(HostFacts, HoldModelCachesAndTheCgroupsLimits) {
  const FakeRoot root("host_small");
  root.Write("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9B14\n");
  root.Write("/proc/meminfo", "MemTotal:       1048576 kB\nMemFree: 1 kB\n");
  root.Write("/sys/fs/cgroup/memory.max", "536870912\n");
  root.Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  root.WriteCache(0, 0, 1, "Data", "32K", "0");
  root.WriteCache(0, 1, 1, "Instruction", "64K", "0");
  root.WriteCache(0, 2, 3, "Unified", "16M", "0-1");

  const HostFacts facts = ReadHostFacts(root.path(), {0, 1});

  EXPECT_EQ(facts.model, "AMD EPYC 9B14");
  EXPECT_THAT(facts.mask, ElementsAre(0, 1));
  EXPECT_EQ(facts.cpus, 1);
  EXPECT_EQ(facts.memory_bytes, 536870912U);
  EXPECT_EQ(facts.l1_bytes, 32768U);
  EXPECT_EQ(facts.l2_bytes, 0U);
  EXPECT_EQ(facts.llc_bytes, 16777216U);
}

TEST(HostFacts, HoldTheLimitsOfAUnitAndOfWhatIsAboveIt) {
  const FakeRoot root("host_unit");
  root.Write("/proc/meminfo", "MemTotal:       1048576 kB\n");
  root.Write("/proc/self/cgroup", "0::/a.slice/b.service\n");
  root.Write("/sys/fs/cgroup/a.slice/b.service/cpu.max", "350000 100000\n");
  root.Write("/sys/fs/cgroup/a.slice/memory.max", "536870912\n");

  const HostFacts facts = ReadHostFacts(root.path(), FirstCpus(8));

  EXPECT_EQ(facts.cpus, 3);
  EXPECT_EQ(facts.memory_bytes, 536870912U);
}

TEST(HostFacts, CountEveryLastCacheOfAServer) {
  const FakeRoot root("host_8ccx");
  WriteServer(root, 8, "32768K");

  const HostFacts facts = ReadHostFacts(root.path(), FirstCpus(16));

  EXPECT_EQ(facts.llc_bytes, 32 * kMiB);
  EXPECT_THAT(facts.last_caches, SizeIs(8));
  EXPECT_EQ(SpannedLlcBytes(facts), 256 * kMiB);
  EXPECT_THAT(facts.untold, IsEmpty());
}

TEST(HostFacts, CountOnlyTheCachesThatTheMaskSpans) {
  const FakeRoot root("host_mask");
  WriteServer(root, 8, "32768K");

  const HostFacts facts = ReadHostFacts(root.path(), {3, 4, 5});

  ASSERT_THAT(facts.last_caches, SizeIs(2));
  EXPECT_EQ(SpannedLlcBytes(facts), 64 * kMiB);
}

TEST(HostFacts, TakeACacheWithoutItsSharersForTheCpusOwn) {
  const FakeRoot root("host_no_lists");
  root.WriteCache(0, 0, 3, "Unified", "16384K", "");
  root.WriteCache(1, 0, 3, "Unified", "16384K", "");

  EXPECT_EQ(SpannedLlcBytes(ReadHostFacts(root.path(), {0, 1})), 32 * kMiB);
}

TEST(HostFacts, WithoutFilesClaimNothingAndAssumeALargeServersShare) {
  const FakeRoot root("host_none");

  const HostFacts facts = ReadHostFacts(root.path(), FirstCpus(2));

  EXPECT_EQ(facts.model, "unknown");
  EXPECT_EQ(facts.llc_bytes, 0U);
  EXPECT_THAT(facts.last_caches, IsEmpty());
  EXPECT_THAT(facts.untold, ElementsAre(0, 1));
  EXPECT_EQ(SpannedLlcBytes(facts), 32 * kMiB);
  EXPECT_EQ(SpannedLlcBytes(ReadHostFacts(root.path(), FirstCpus(64))), 256 * kMiB);
}

TEST(HostFacts, DoNotTakeASecondLevelForTheLastWhereTheThirdIsHidden) {
  const FakeRoot root("host_two_levels");
  for (const int cpu : {0, 1}) {
    root.WriteCache(cpu, 0, 1, "Data", "32K", std::to_string(cpu));
    root.WriteCache(cpu, 1, 2, "Unified", "1024K", std::to_string(cpu));
  }

  const HostFacts facts = ReadHostFacts(root.path(), {0, 1});

  EXPECT_EQ(facts.l2_bytes, kMiB);
  EXPECT_THAT(facts.untold, ElementsAre(0, 1));
  EXPECT_EQ(SpannedLlcBytes(facts), 32 * kMiB);
}

TEST(PlanFlush, ReadsTwiceEveryLastCacheFromItsOwnCpus) {
  const FakeRoot root("plan_8ccx");
  WriteServer(root, 8, "32768K");

  const auto plan = PlanFlush(ReadHostFacts(root.path(), FirstCpus(16)));

  ASSERT_THAT(plan, SizeIs(16));
  std::vector<std::uint64_t> of_cache(8);
  for (const FlushShare& share : plan)
    of_cache[static_cast<std::size_t>(share.cpu) / 2] += share.bytes;
  EXPECT_THAT(of_cache, Each(testing::Ge(64 * kMiB)));
  EXPECT_LT(Total(plan), 520 * kMiB);
}

TEST(PlanFlush, GivesMoreToEachWhereFewCpusShareACache) {
  const FakeRoot root("plan_mask");
  WriteServer(root, 2, "32768K");

  // One CPU of the first cache, both of the second.
  const auto plan = PlanFlush(ReadHostFacts(root.path(), {0, 2, 3}));

  ASSERT_THAT(plan, SizeIs(3));
  EXPECT_GE(plan[0].bytes, 64 * kMiB);
  EXPECT_GE(plan[1].bytes, 32 * kMiB);
  EXPECT_LT(plan[1].bytes, 33 * kMiB);
}

TEST(PlanFlush, CoversBothSockets) {
  const FakeRoot root("plan_sockets");
  for (const int cpu : {0, 1}) root.WriteCache(cpu, 0, 3, "Unified", "107520K", "0-1");
  for (const int cpu : {2, 3}) root.WriteCache(cpu, 0, 3, "Unified", "107520K", "2-3");

  const auto plan = PlanFlush(ReadHostFacts(root.path(), FirstCpus(4)));

  ASSERT_THAT(plan, SizeIs(4));
  EXPECT_GE(plan[0].bytes + plan[1].bytes, 210 * kMiB);
  EXPECT_GE(plan[2].bytes + plan[3].bytes, 210 * kMiB);
}

TEST(PlanFlush, PushesOutEachCpusSecondLevelToo) {
  const FakeRoot root("plan_l2");
  for (const int cpu : {0, 1}) {
    root.WriteCache(cpu, 0, 2, "Unified", "2048K", std::to_string(cpu));
    root.WriteCache(cpu, 1, 3, "Unified", "2048K", "0-1");
  }

  for (const FlushShare& share : PlanFlush(ReadHostFacts(root.path(), {0, 1}))) {
    EXPECT_GE(share.bytes, 4 * kMiB);
  }
}

TEST(PlanFlush, EmptiesWhatItMustAssume) {
  const FakeRoot root("plan_none");

  const auto plan = PlanFlush(ReadHostFacts(root.path(), {3, 5}));

  ASSERT_THAT(plan, SizeIs(2));
  EXPECT_EQ(plan[0].cpu, 3);
  EXPECT_EQ(plan[1].cpu, 5);
  EXPECT_GE(Total(plan), 64 * kMiB);
}

}  // namespace
}  // namespace gridclock
