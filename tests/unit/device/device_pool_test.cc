#include "kernels/device/cuda/device_pool.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

// A driver that hands out addresses and counts.
struct FakeDriver {
  std::uint64_t has = 1 << 30;
  std::vector<void*> freed;
  int taken = 0;

  DevicePool::Options Options(std::uint64_t limit) {
    return {.limit = [limit](std::uint64_t) { return limit; },
            .take = [this](std::uint64_t bytes) -> void* {
              if (bytes > has) return nullptr;
              return reinterpret_cast<void*>(static_cast<std::uintptr_t>(4096 * ++taken));
            },
            .give_back = [this](void* data) { freed.push_back(data); }};
  }
};

TEST(DevicePool, GivesOutAgainWhatWasFreed) {
  FakeDriver driver;
  DevicePool pool(driver.Options(64 * kMiB));
  ASSERT_OK_AND_ASSIGN(auto first, pool.Allocate(3 * kMiB));
  void* const data = first->data();
  first = nullptr;

  ASSERT_OK_AND_ASSIGN(const auto second, pool.Allocate(3 * kMiB));

  EXPECT_EQ(second->data(), data);
  EXPECT_EQ(second->size(), 3 * kMiB);
  EXPECT_EQ(driver.taken, 1);
}

TEST(DevicePool, DoesNotWasteALargeBlockOnASmallWish) {
  FakeDriver driver;
  DevicePool pool(driver.Options(64 * kMiB));
  ASSERT_OK_AND_ASSIGN(auto large, pool.Allocate(32 * kMiB));
  large = nullptr;

  ASSERT_OK_AND_ASSIGN(const auto small, pool.Allocate(100));

  EXPECT_EQ(driver.taken, 2);
  EXPECT_EQ(pool.kept(), 32 * kMiB);
}

TEST(DevicePool, RefusesBeyondItsBudgetWithTheNumbers) {
  FakeDriver driver;
  DevicePool pool(driver.Options(8 * kMiB));
  ASSERT_OK_AND_ASSIGN(const auto held, pool.Allocate(6 * kMiB));

  const auto refused = pool.Allocate(4 * kMiB);

  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                AllOf(HasSubstr("want 4194304 bytes"),
                                      HasSubstr("2097152 of 8388608 are free"))));
  EXPECT_THAT(refused.status(), ReasonIs("DEVICE_MEMORY"));
  EXPECT_THAT(pool.Allocate(2 * kMiB), IsOk());
  EXPECT_THAT(pool.Allocate(~std::uint64_t{0}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("want")));
}

TEST(DevicePool, GivesBackWhatItKeepsBeforeTheBudgetIsExceeded) {
  FakeDriver driver;
  DevicePool pool(driver.Options(8 * kMiB));
  ASSERT_OK_AND_ASSIGN(auto first, pool.Allocate(4 * kMiB));
  first = nullptr;

  ASSERT_OK_AND_ASSIGN(const auto second, pool.Allocate(8 * kMiB));

  EXPECT_EQ(driver.freed.size(), 1U);
  EXPECT_EQ(pool.kept(), 0U);
  EXPECT_EQ(pool.used(), 8 * kMiB);
}

TEST(DevicePool, SaysWhenTheDriverHasLessThanTheBudget) {
  FakeDriver driver{.has = 2 * kMiB, .freed = {}};
  DevicePool pool(driver.Options(64 * kMiB));

  EXPECT_THAT(pool.Allocate(4 * kMiB),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the driver has not")));
  EXPECT_EQ(pool.used(), 0U);
  EXPECT_THAT(pool.Allocate(0), IsOk());
}

// Another process on the same device has the rest.
TEST(DevicePool, TheBudgetIsWhatOthersLeaveNow) {
  FakeDriver driver;
  std::uint64_t free = 10 * kMiB;
  DevicePool::Options options = driver.Options(0);
  options.limit = [&](std::uint64_t held) { return free + held; };
  DevicePool pool(options);
  EXPECT_THAT(pool.Allocate(20 * kMiB), StatusIs(absl::StatusCode::kResourceExhausted,
                                                 HasSubstr("10485760 of 10485760 are free")));

  free = 30 * kMiB;
  ASSERT_OK_AND_ASSIGN(const auto held, pool.Allocate(20 * kMiB));
  free = 4 * kMiB;

  EXPECT_THAT(pool.Allocate(6 * kMiB), StatusIs(absl::StatusCode::kResourceExhausted,
                                                HasSubstr("4194304 of 25165824 are free")));
  EXPECT_THAT(pool.Allocate(4 * kMiB), IsOk());
}

// Under a checker of memory, which knows where blocks end, and what was freed.
TEST(DevicePool, WhereItIsExactABufferIsABlockOfItsSizeAndEndsWithIt) {
  FakeDriver driver;
  std::vector<std::uint64_t> sizes;
  DevicePool::Options options = driver.Options(64 * kMiB);
  options.exact = true;
  int asked = 0;
  options.limit = [&](std::uint64_t) { return ++asked == 1 ? 64 * kMiB : 65 * kMiB; };
  options.take = [&, take = options.take](std::uint64_t bytes) {
    sizes.push_back(bytes);
    return take(bytes);
  };
  DevicePool pool(options);
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{5}, 3 * kMiB + 1, 3 * kMiB + 1}) {
    ASSERT_OK_AND_ASSIGN(const auto buffer, pool.Allocate(size));
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(pool.used(), std::max<std::uint64_t>(size, 1));
  }

  EXPECT_THAT(sizes, testing::ElementsAre(1, 5, 3 * kMiB + 1, 3 * kMiB + 1));
  EXPECT_EQ(driver.freed.size(), 4U);
  EXPECT_EQ(pool.used(), 0U);
  EXPECT_EQ(pool.kept(), 0U);
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(pool.Allocate(65 * kMiB), IsOk());
  EXPECT_FALSE(pool.Allocate(65 * kMiB + 1).ok());
}

TEST(DevicePool, GivesBackTheLargestFirst) {
  FakeDriver driver;
  DevicePool pool(driver.Options(64 * kMiB));
  {
    ASSERT_OK_AND_ASSIGN(const auto small, pool.Allocate(2 * kMiB));
    ASSERT_OK_AND_ASSIGN(const auto large, pool.Allocate(32 * kMiB));
    ASSERT_OK_AND_ASSIGN(const auto medium, pool.Allocate(8 * kMiB));
  }
  ASSERT_EQ(pool.kept(), 42 * kMiB);

  pool.Trim(10 * kMiB);
  EXPECT_EQ(pool.kept(), 10 * kMiB);
  EXPECT_EQ(driver.freed.size(), 1U);
  pool.Trim(10 * kMiB - 1);
  EXPECT_EQ(pool.kept(), 2 * kMiB);
  pool.Trim();
  EXPECT_EQ(pool.kept(), 0U);
  EXPECT_EQ(driver.freed.size(), 3U);
}

}  // namespace
}  // namespace gridclock
