#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cuda/cupti.h"
#include "tests/support/status_matchers.h"

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

std::vector<DeviceActivity> KernelOf(double us, std::uint32_t x, std::uint32_t y = 1) {
  DeviceActivity one = Kernel(1000, 1000 + static_cast<std::uint64_t>(1000 * us), "a");
  one.grid[0] = x;
  one.grid[1] = y;
  return {one};
}

constexpr double kSerialBeyond = 1'300;

TEST(RecordsChoice, IsSerialAfterTheFirstWhereBlocksAreMany) {
  for (const std::uint32_t blocks : {1U << 11, 1U << 18}) {
    RecordsChoice choice(kSerialBeyond);
    EXPECT_EQ(choice.records(), KernelRecords::kConcurrent);
    EXPECT_FALSE(choice.Take(KernelOf(1003, blocks >> 8, 1 << 8)));
    EXPECT_EQ(choice.records(), KernelRecords::kSerial);
    EXPECT_EQ(choice.TimeOf(KernelOf(979, blocks)), 977'700) << "its zero is that of the others";
    EXPECT_TRUE(choice.Take(KernelOf(979, blocks)));
    EXPECT_TRUE(choice.Take(KernelOf(1500, blocks)));
    EXPECT_EQ(choice.records(), KernelRecords::kSerial);
  }
}

TEST(RecordsChoice, IsConcurrentAtOnceForFewBlocksAndSeveralKernels) {
  std::vector two = KernelOf(247, 1 << 18);
  two.push_back(two[0]);
  for (const auto& record : {KernelOf(30, (1 << 11) - 1), two}) {
    RecordsChoice choice(kSerialBeyond);
    EXPECT_TRUE(choice.Take(record));
    EXPECT_EQ(choice.records(), KernelRecords::kConcurrent);
    EXPECT_TRUE(choice.Take(record));
  }
}

TEST(RecordsChoice, IsConcurrentWhereSerialRecordsDoNotWork) {
  RecordsChoice choice(KernelRecords::kConcurrent);
  EXPECT_TRUE(choice.Take(KernelOf(247, 1 << 18)));
  EXPECT_EQ(choice.records(), KernelRecords::kConcurrent);
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

TEST(Activities, ACopyAndAKernelOfItsNameAreTwo) {
  DeviceActivity copy = Kernel(1, 2, "memcpy");
  copy.kind = ActivityKind::kCopy;
  const DeviceActivity activities[] = {copy, Kernel(3, 4, "memcpy"), copy, Kernel(7, 8, "memset")};

  const std::vector<Launch> launches = SummariseActivities(activities);

  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[0].count, 2);
  EXPECT_EQ(launches[1].name, "memcpy");
  EXPECT_EQ(launches[1].count, 1);
  EXPECT_EQ(CopiesAmong(activities), 2);
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

std::vector<Launch> Ran(std::vector<std::pair<const char*, std::int64_t>> kernels) {
  std::vector<Launch> ran;
  ran.reserve(kernels.size());
  for (const auto& [name, count] : kernels) ran.push_back({.name = name, .count = count});
  return ran;
}

TEST(LaunchList, IsKnownOnceTwoRecordsInARowAreTheSame) {
  LaunchList list;
  EXPECT_FALSE(list.has_several());
  EXPECT_FALSE(list.Take(Ran({{"a", 1}})).value());
  EXPECT_TRUE(list.Take(Ran({{"a", 1}})).value());
  EXPECT_FALSE(list.has_several());
  const auto other = list.Take(Ran({{"a", 2}}));
  EXPECT_THAT(other, StatusIs(absl::StatusCode::kUnavailable,
                              "CUPTI recorded 2 x 'a' of this launch, 1 x 'a' of the one before: "
                              "not trusted"));
  EXPECT_THAT(other.status(), ReasonIs("RECORD_LOST"));
  EXPECT_TRUE(list.Take(Ran({{"a", 1}})).value());
}

// A buffer that came late: the complete records behind it are not what was lost.
TEST(LaunchList, AFirstRecordThatLacksAKernelIsNotWhatTheLaunchRuns) {
  LaunchList list;
  EXPECT_FALSE(list.Take(Ran({{"a", 1}})).value());
  EXPECT_FALSE(list.Take(Ran({{"a", 1}, {"b", 1}})).value());
  EXPECT_TRUE(list.has_several());
  EXPECT_TRUE(list.Take(Ran({{"b", 1}, {"a", 1}})).value());
}

TEST(LaunchList, ALaunchThatIsNeverTheSameIsNotTrusted) {
  LaunchList list;
  for (std::int64_t i = 1; i <= 3; ++i) {
    EXPECT_FALSE(list.Take(Ran({{"a", i}})).value());
  }
  EXPECT_THAT(list.Take(Ran({{"a", 4}})).status(), ReasonIs("RECORD_LOST"));
}

}  // namespace
}  // namespace gridclock
