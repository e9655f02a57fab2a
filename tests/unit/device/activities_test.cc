#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cuda/cupti.h"

namespace gridclock {
namespace {

DeviceActivity Kernel(std::uint64_t start, std::uint64_t end, const char* name) {
  return {.start_ns = start, .end_ns = end, .name = name};
}

TEST(Activities, SpanFromTheFirstStartToTheLastEnd) {
  const DeviceActivity activities[] = {Kernel(1000, 1900, "a"), Kernel(1200, 5000, "b"),
                                       Kernel(2000, 2500, "a")};
  EXPECT_EQ(SpanNs(activities), 4000);
}

// Of an H200, with its 132 multiprocessors.
TEST(Activities, ManyShortBlocksAreThoseThatAGpuCanHardlyStartInTime) {
  const auto kernel = [](std::uint64_t us, std::uint32_t x, std::uint32_t y) {
    DeviceActivity one = Kernel(1000, 1000 + 1000 * us, "a");
    one.grid[0] = x;
    one.grid[1] = y;
    return std::vector{one};
  };
  EXPECT_TRUE(HasManyShortBlocks(kernel(247, 1 << 18, 1), 132)) << "one element a thread";
  EXPECT_TRUE(HasManyShortBlocks(kernel(247, 1 << 10, 1 << 8), 132));
  EXPECT_FALSE(HasManyShortBlocks(kernel(127, 1 << 16, 1), 132)) << "16 bytes a thread";
  EXPECT_FALSE(HasManyShortBlocks(kernel(30, 1 << 15, 1), 132)) << "few";
  std::vector two = kernel(247, 1 << 18, 1);
  two.push_back(two[0]);
  EXPECT_FALSE(HasManyShortBlocks(two, 132)) << "serial records would put a gap between them";
}

TEST(Activities, AreCountedByNameAndShape) {
  DeviceActivity large = Kernel(3000, 3500, "_ZN1a1bEv");
  large.grid[1] = 7;
  const DeviceActivity activities[] = {Kernel(1, 2, "_ZN1a1bEv"), Kernel(3, 4, "memset"),
                                       Kernel(5, 6, "_ZN1a1bEv"), large};

  const std::vector<Launch> launches = SummariseActivities(activities);

  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[0].name, "a::b()");
  EXPECT_EQ(launches[0].count, 2);
  EXPECT_EQ(launches[1].name, "memset");
  EXPECT_EQ(launches[1].count, 1);
  EXPECT_EQ(launches[2].name, "a::b()");
  EXPECT_EQ(launches[2].grid[1], 7U);
}

TEST(Activities, AreTheSameByNameShapeAndCountInAnyOrder) {
  const Launch a{.name = "a", .count = 1}, b{.name = "b", .count = 2}, c{.name = "c", .count = 1};
  Launch wider = a, twice = a;
  wider.grid[0] = 2;
  twice.count = 2;
  const std::vector<Launch> one = {a, b}, turned = {b, a};
  EXPECT_TRUE(SameLaunches(one, turned));
  for (const std::vector<Launch>& other :
       std::vector<std::vector<Launch>>{{a}, {a, b, c}, {c, b}, {wider, b}, {twice, b}}) {
    EXPECT_FALSE(SameLaunches(one, other));
    EXPECT_FALSE(SameLaunches(other, one));
  }
}

}  // namespace
}  // namespace gridclock
