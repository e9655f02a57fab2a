#include "kernels/device/cpu/conditions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "kernels/device/cpu/host.h"
#include "tests/support/fake_root.h"

namespace gridclock {
namespace {

// A machine of four CPUs, of which this process may use 1 and 2.
class ConditionsTest : public testing::Test {
 protected:
  // Ticks since boot: at work and idle on CPU 1 and on CPU 2; of this process.
  HostCounts Read(int busy1, int idle1, int busy2, int idle2, int own) {
    const auto line = [](int cpu, int busy, int idle) {
      return "cpu" + std::to_string(cpu) + " " + std::to_string(busy / 2) + " 0 " +
             std::to_string(busy - busy / 2) + " " + std::to_string(idle) + " 3 0 0 0 0 0\n";
    };
    root_.Write("/proc/stat", "cpu  900000 0 0 900000 0 0 0 0 0 0\n" + line(0, next_ += 5000, 7) +
                                  line(1, busy1, idle1) + line(2, busy2, idle2) + line(3, 9, 9));
    root_.Write("/proc/self/stat", "7 (a) name) R 1 7 7 0 -1 4194304 99 0 0 0 " +
                                       std::to_string(own - own / 4) + " " +
                                       std::to_string(own / 4) + " 0 0 20 0 4 0 1287142 3133440\n");
    return ReadHostCounts({1, 2}, /*server=*/0, root_.path());
  }

  const FakeRoot root_{"conditions"};
  int next_ = 0;  // CPU 0 is busy with others, who are none of our concern there.
};

TEST_F(ConditionsTest, OwnWorkIsNotSharing) {
  const HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  EXPECT_FALSE(Compare(before, Read(1200, 5000, 2200, 4000, 1100)).shared);
}

TEST(Conditions, LittleWorkOfOurServerIsNotSharing) {
  const FakeRoot root("conditions_server");
  const auto read = [&](int busy, int own, int of_server) {
    const auto stat = [](int ticks) {
      return "7 (a) R 1 7 7 0 -1 4194304 99 0 0 0 " + std::to_string(ticks) + " 0 0 0 20 0\n";
    };
    root.Write("/proc/stat", "cpu0 " + std::to_string(busy) + " 0 0 5000 0 0 0 0 0 0\n");
    root.Write("/proc/self/stat", stat(own));
    root.Write("/proc/42/stat", stat(of_server));
    return ReadHostCounts({0}, /*server=*/42, root.path());
  };
  const HostCounts before = read(1200, 800, 300);
  // 2 s of one CPU: all ours but 0.19 s, of which the server had 0.1 s; all but that much beside
  // it.
  EXPECT_FALSE(Compare(before, read(1400, 981, 310)).shared);
  EXPECT_TRUE(Compare(before, read(1400, 981, 300)).shared);
  // Another client's upload: 1 s of the server's work.
  EXPECT_TRUE(Compare(before, read(1400, 900, 400)).shared);
}

TEST_F(ConditionsTest, OthersOnOurCpusAreSharing) {
  const HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  // 2 s of two CPUs, fully busy; half of it was ours.
  EXPECT_TRUE(Compare(before, Read(1200, 5000, 2200, 4000, 900)).shared);
  // A tenth of one CPU, while we worked on the other.
  EXPECT_TRUE(Compare(before, Read(1200, 5000, 2021, 4179, 900)).shared);
}

TEST_F(ConditionsTest, AFewPercentAreTheUsualNoise) {
  const HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  EXPECT_FALSE(Compare(before, Read(1200, 5000, 2016, 4184, 900)).shared);
}

TEST_F(ConditionsTest, AHandfulOfTicksIsTooLittleToTell) {
  const HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  // 40 ms of two CPUs: half of it was others'.
  const Conditions too_short = Compare(before, Read(1004, 5000, 2004, 4000, 704));
  EXPECT_FALSE(too_short.shared);
  EXPECT_TRUE(too_short.sharing_unknown);
  const Conditions enough = Compare(before, Read(1005, 5000, 2005, 4000, 705));
  EXPECT_TRUE(enough.shared);
  EXPECT_FALSE(enough.sharing_unknown);
  // As long a window, in which we were alone.
  const Conditions alone = Compare(before, Read(1005, 5000, 2000, 4005, 705));
  EXPECT_FALSE(alone.shared);
  EXPECT_FALSE(alone.sharing_unknown);
}

TEST_F(ConditionsTest, WithoutItsOwnTicksNothingIsClaimedOfOthers) {
  HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  HostCounts after = Read(1200, 5000, 2200, 4000, 700);
  before.own = after.own = std::nullopt;
  EXPECT_FALSE(Compare(before, after).shared);
  EXPECT_TRUE(Compare(before, after).sharing_unknown);
}

TEST_F(ConditionsTest, WhereACpuCameOrWentSharingIsUnknown) {
  const HostCounts before = Read(1000, 5000, 2000, 4000, 700);
  HostCounts after = Read(1200, 5000, 2200, 4000, 700);
  after.cpus = 1;
  EXPECT_FALSE(Compare(before, after).shared);
  EXPECT_TRUE(Compare(before, after).sharing_unknown);
}

TEST(Conditions, OnABigMachineHalfACpuOfOthersCounts) {
  // 64 CPUs for 4 s: 5 % of them would be more than three CPUs.
  const HostCounts before{.cpus = 64, .busy = 0, .steal = 0, .total = 0, .own = 0};
  HostCounts after{.cpus = 64, .busy = 10'000 + 210, .steal = 0, .total = 64 * 400, .own = 10'000};
  EXPECT_TRUE(Compare(before, after).shared);
  after.busy = 10'000 + 190;
  EXPECT_FALSE(Compare(before, after).shared);
  EXPECT_FALSE(Compare(before, after).sharing_unknown);
  // As many ticks as can come from rounding on so many CPUs.
  EXPECT_FALSE(Compare(before, {.cpus = 64, .busy = 60, .steal = 0, .total = 64, .own = 0}).shared);
  // One who works all the time is told from rounding after a tick for each CPU.
  HostCounts quiet{.cpus = 64, .busy = 0, .steal = 0, .total = 64 * 63, .own = 0};
  EXPECT_TRUE(Compare(before, quiet).sharing_unknown);
  quiet.total = 64 * 64;
  EXPECT_FALSE(Compare(before, quiet).sharing_unknown);
}

TEST(Conditions, AreSilentWhereTheSystemIs) {
  const FakeRoot root("conditions_none");
  const Conditions conditions = Compare(ReadHostCounts({0}, /*server=*/0, root.path()),
                                        ReadHostCounts({0}, /*server=*/0, root.path()));
  EXPECT_FALSE(conditions.shared);
  EXPECT_TRUE(conditions.sharing_unknown);
  EXPECT_FALSE(conditions.throttled);
}

TEST(Conditions, TimeThatTheHypervisorTookMakesTheDeviceShared) {
  const FakeRoot root("conditions_steal");
  root.Write("/proc/stat", "cpu0 100 0 50 1000 0 0 0 5 0 0\n");
  const HostCounts before = ReadHostCounts({0}, /*server=*/0, root.path());
  root.Write("/proc/stat", "cpu0 180 0 60 1000 0 0 0 15 0 0\n");
  EXPECT_TRUE(Compare(before, ReadHostCounts({0}, /*server=*/0, root.path())).shared);
  root.Write("/proc/stat", "cpu0 1080 0 60 1000 0 0 0 15 0 0\n");
  // 1 % is the usual noise.
  EXPECT_FALSE(Compare(before, ReadHostCounts({0}, /*server=*/0, root.path())).shared);
}

TEST(Conditions, AStopByTheQuotaIsThrottling) {
  const FakeRoot root("conditions_quota");
  const auto write = [&](int stops) {
    root.Write("/sys/fs/cgroup/cpu.stat", "usage_usec 5\nnr_periods 3\nnr_throttled " +
                                              std::to_string(stops) + "\nthrottled_usec 9\n");
  };
  write(7);
  const HostCounts before = ReadHostCounts({0}, /*server=*/0, root.path());
  EXPECT_FALSE(Compare(before, ReadHostCounts({0}, /*server=*/0, root.path())).throttled);
  write(8);
  EXPECT_TRUE(Compare(before, ReadHostCounts({0}, /*server=*/0, root.path())).throttled);
}

TEST(Conditions, AStopOfAUnitIsSeenAtItsOwnLevelAndAbove) {
  const FakeRoot root("conditions_unit");
  root.Write("/proc/self/cgroup", "0::/system.slice/gridclock.service\n");
  const std::string slice = "/sys/fs/cgroup/system.slice";
  const auto write = [&](int of_slice, int of_unit) {
    root.Write(slice + "/cpu.stat", "nr_throttled " + std::to_string(of_slice) + "\n");
    root.Write(slice + "/gridclock.service/cpu.stat",
               "nr_throttled " + std::to_string(of_unit) + "\n");
    return ReadHostCounts({0}, /*server=*/0, root.path());
  };
  const HostCounts before = write(5, 9);
  EXPECT_FALSE(Compare(before, write(5, 9)).throttled);
  EXPECT_TRUE(Compare(before, write(5, 10)).throttled);
  EXPECT_TRUE(Compare(before, write(6, 9)).throttled);
  // A group that was made anew counts from 0: the sum is less than before.
  EXPECT_TRUE(Compare(before, write(6, 0)).throttled);
}

TEST(Conditions, HeatOfAnyCpuOfTheMaskOrItsPackageIsThrottling) {
  const FakeRoot root("conditions_heat");
  const auto write = [&](int cpu, const std::string& what, int stops) {
    root.Write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/thermal_throttle/" + what +
                   "_throttle_count",
               std::to_string(stops) + "\n");
  };
  const auto write_all = [&] {
    for (const int cpu : {0, 1, 2}) {
      write(cpu, "core", 3);
      write(cpu, "package", 4);
    }
    return ReadHostCounts({1, 2}, /*server=*/0, root.path());
  };
  const HostCounts before = write_all();
  EXPECT_FALSE(Compare(before, ReadHostCounts({1, 2}, /*server=*/0, root.path())).throttled);
  for (const int cpu : {1, 2}) {
    for (const char* what : {"core", "package"}) {
      write(cpu, what, 5);
      EXPECT_TRUE(Compare(before, ReadHostCounts({1, 2}, /*server=*/0, root.path())).throttled)
          << cpu << what;
      write_all();
    }
  }
  write(0, "core", 5);  // Not of the mask.
  EXPECT_FALSE(Compare(before, ReadHostCounts({1, 2}, /*server=*/0, root.path())).throttled);
}

// Real ticks of this machine: another process that spins on our CPUs is seen within seconds.
TEST(Conditions, ARealProcessBesideUsIsSeen) {
  const std::vector<int> mask = AffinityCpus();
  const HostCounts before = ReadHostCounts(mask, /*server=*/0);
  if (!before.own || !before.busy) GTEST_SKIP() << "this system does not count ticks";
  std::string words[] = {"sh", "-c", "while :; do :; done"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  char* env[] = {nullptr};
  pid_t pid = -1;
  ASSERT_EQ(posix_spawn(&pid, "/bin/sh", nullptr, nullptr, argv, env), 0);

  bool shared = false;
  for (const time_t end = time(nullptr) + 20; !shared && time(nullptr) < end;) {
    shared = Compare(before, ReadHostCounts(mask, /*server=*/0)).shared;
  }

  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_TRUE(shared);
}

}  // namespace
}  // namespace gridclock
