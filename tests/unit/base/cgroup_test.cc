#include "base/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_root.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kUnit[] = "0::/system.slice/gridclock.service\n";

TEST(Cgroup, OfAUnitAreItsOwnLimitsAndThoseAbove) {
  const FakeRoot root("cgroup_unit");
  root.Write("/proc/self/cgroup", kUnit);
  root.Write("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n");  // The root has no limits.
  root.Write("/sys/fs/cgroup/system.slice/memory.max", "9000\n");
  root.Write("/sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  root.Write("/sys/fs/cgroup/system.slice/gridclock.service/memory.max", "max\n");
  root.Write("/sys/fs/cgroup/system.slice/gridclock.service/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupMemoryLimit(root.path()), 9000u);
  EXPECT_EQ(CgroupCpus(root.path()), 1.5);

  root.Write("/sys/fs/cgroup/system.slice/gridclock.service/memory.max", "8000\n");
  root.Write("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
  EXPECT_EQ(CgroupMemoryLimit(root.path()), 8000u);
  EXPECT_EQ(CgroupCpus(root.path()), 0.5);
}

TEST(Cgroup, TheStopsOfEachLevelAreCountedByThemselves) {
  const FakeRoot root("cgroup_stops");
  root.Write("/proc/self/cgroup", kUnit);
  const std::string slice = "/sys/fs/cgroup/system.slice", unit = slice + "/gridclock.service";
  root.Write(slice + "/cpu.stat", "usage_usec 5\nnr_periods 3\nnr_throttled 7\n");
  root.Write(unit + "/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_usec 9\n");
  root.Write("/sys/fs/cgroup/other.slice/cpu.stat", "nr_throttled 99\n");
  EXPECT_THAT(CgroupStops(root.path()),
              ElementsAre(Pair(root.path() + slice, 7), Pair(root.path() + unit, 2)));
}

TEST(Cgroup, OfAContainerIsTheMountsRoot) {
  const FakeRoot root("cgroup_container");
  root.Write("/sys/fs/cgroup/memory.max", "7000\n");
  root.Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  root.Write("/sys/fs/beside/memory.max", "1\n");
  // With a namespace of its own; with the host's names; of a group beside the mounted one; untold.
  for (const char* text : {"0::/\n", "0::/machine/abc\n", "0::/../beside\n", ""}) {
    if (*text != '\0') root.Write("/proc/self/cgroup", text);
    EXPECT_EQ(CgroupMemoryLimit(root.path()), 7000u) << text;
    EXPECT_EQ(CgroupCpus(root.path()), 2.0) << text;
  }
}

TEST(Cgroup, OfVersion1LieInAFolderForEachController) {
  const FakeRoot root("cgroup_v1");
  root.Write("/proc/self/cgroup",
             "9:name=systemd:/a\n5:cpuacct,cpu:/jobs/one\n4:memory:/jobs\n3:memory_of_others:/x\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "6000\n");
  root.Write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "300000\n");
  root.Write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  root.Write("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us", "-1\n");
  root.Write("/sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us", "100000\n");
  root.Write("/sys/fs/cgroup/cpu/jobs/one/cpu.stat", "nr_throttled 4\n");
  EXPECT_EQ(CgroupMemoryLimit(root.path()), 6000u);
  EXPECT_EQ(CgroupCpus(root.path()), 3.0);
  EXPECT_THAT(CgroupStops(root.path()),
              ElementsAre(Pair(root.path() + "/sys/fs/cgroup/cpu/jobs/one", 4)));
}

TEST(Cgroup, WithoutFilesThereAreNoLimits) {
  const FakeRoot root("cgroup_none");
  EXPECT_EQ(CgroupMemoryLimit(root.path()), std::nullopt);
  EXPECT_EQ(CgroupCpus(root.path()), std::nullopt);
  EXPECT_THAT(CgroupStops(root.path()), IsEmpty());
}

}  // namespace
}  // namespace gridclock
