#include "kernels/worker/memory_limit.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(PrivateMemoryLimit, IsWhatCallsCanNeed) {
  EXPECT_EQ(PrivateMemoryLimit({.arena_bytes = 4 * kGiB, .flush_bytes = 3, .runtime_bytes = kGiB},
                               {.machine_bytes = 64 * kGiB, .shared_bytes = 4 * kGiB}),
            9 * kGiB + 3);
}

TEST(PrivateMemoryLimit, ActsBeforeTheMachineIsFull) {
  const MemoryNeeds needs{.arena_bytes = 8 * kGiB, .flush_bytes = 0, .runtime_bytes = kGiB};
  EXPECT_EQ(PrivateMemoryLimit(needs, {.machine_bytes = 16 * kGiB, .shared_bytes = 8 * kGiB}),
            6 * kGiB);  // And 2 GiB for the server.
}

TEST(PrivateMemoryLimit, OfAGuestCountsTheArenaThatItDoesNotSee) {
  const MemoryNeeds guest{.arena_bytes = 4 * kGiB, .flush_bytes = 0, .runtime_bytes = kGiB};
  EXPECT_EQ(PrivateMemoryLimit(guest, {.machine_bytes = 16 * kGiB, .shared_bytes = 12 * kGiB}),
            2 * kGiB);
}

TEST(PrivateMemoryLimit, AllDevicesTogetherLeaveTheMachineRoom) {
  constexpr std::uint64_t kMachine = 512 * kGiB, kShared = 80 * kGiB, kDevices = 8;
  const MemoryNeeds needs{.arena_bytes = 16 * kGiB, .flush_bytes = 0, .runtime_bytes = 64 * kGiB};
  const std::uint64_t each = PrivateMemoryLimit(
      needs, {.machine_bytes = kMachine, .shared_bytes = kShared, .devices = kDevices});
  EXPECT_EQ(kDevices * each + kShared, kMachine / 8 * 7);
}

TEST(PrivateMemoryLimit, LetsAWorkerStartOnASmallMachine) {
  const MemoryNeeds needs{.arena_bytes = kGiB, .flush_bytes = 0, .runtime_bytes = kGiB};
  EXPECT_EQ(PrivateMemoryLimit(needs, {.machine_bytes = kGiB, .shared_bytes = kGiB}), kGiB / 2);
}

}  // namespace
}  // namespace gridclock
