#include "server/fleet/arena.h"

#include <cerrno>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST(Arena, WhatItHoldsIsReadThroughItsDescriptor) {
  ASSERT_OK_AND_ASSIGN(const Arena arena, Arena::Create(kMiB, 4096));
  EXPECT_EQ(arena.size(), kMiB);
  arena.At({.offset = 128, .size = 4})[2] = std::byte{42};
  std::byte seen{};
  ASSERT_EQ(pread(arena.fd(), &seen, 1, 130), 1);
  EXPECT_EQ(seen, std::byte{42});
}

TEST(Arena, CanNeitherShrinkNorGrow) {
  ASSERT_OK_AND_ASSIGN(const Arena arena, Arena::Create(kMiB, 0));
  EXPECT_EQ(ftruncate(arena.fd(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(arena.fd(), 2 * kMiB), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(Arena, SurvivesBeingMoved) {
  ASSERT_OK_AND_ASSIGN(Arena first, Arena::Create(kMiB, 0));
  first.At({.offset = 0, .size = 1})[0] = std::byte{7};
  const Arena second = std::move(first);
  EXPECT_EQ(second.At({.offset = 0, .size = 1})[0], std::byte{7});
}

// That are faulted in.
std::uint64_t BytesIn(const UniqueFd& memory) {
  struct stat status {};
  EXPECT_EQ(fstat(memory.get(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(Arena, ItsEndStopsItsWarming) {
  constexpr std::uint64_t kMuch = 16 * 1024 * kMiB;  // Warm after ten seconds.
  UniqueFd memory;
  {
    ASSERT_OK_AND_ASSIGN(const Arena arena, Arena::Create(kMuch, kMuch));
    memory = UniqueFd(dup(arena.fd()));
    for (int ms = 0; BytesIn(memory) == 0; ++ms) {
      if (ms == 10'000) GTEST_SKIP() << "nothing is warmed here";
      usleep(1000);
    }
  }
  EXPECT_LT(BytesIn(memory), kMuch);
}

TEST(Arena, E21_WhatTheSystemRefusesIsResourceExhausted) {
  // No address space holds an exabyte.
  EXPECT_THAT(Arena::Create(std::uint64_t{1} << 60, 0),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1152921504606846976")));
}

}  // namespace
}  // namespace gridclock
