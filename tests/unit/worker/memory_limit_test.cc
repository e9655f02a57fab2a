#include "kernels/worker/memory_limit.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TEST(PrivateMemoryLimit, IsWhatCallsCanNeed) {
  EXPECT_EQ(PrivateMemoryLimit({.arena_bytes = 4 * kGiB, .flush_bytes = 3, .runtime_bytes = kGiB},
                               64 * kGiB),
            9 * kGiB + 3);
}

TEST(PrivateMemoryLimit, ActsBeforeTheMachineIsFull) {
  const MemoryNeeds needs{.arena_bytes = 8 * kGiB, .flush_bytes = 0, .runtime_bytes = kGiB};
  EXPECT_EQ(PrivateMemoryLimit(needs, 16 * kGiB), 6 * kGiB);  // And 2 GiB for the server.
}

TEST(PrivateMemoryLimit, LetsAWorkerStartOnASmallMachine) {
  const MemoryNeeds needs{.arena_bytes = kGiB, .flush_bytes = 0, .runtime_bytes = kGiB};
  EXPECT_EQ(PrivateMemoryLimit(needs, kGiB), kGiB / 2);
}

}  // namespace
}  // namespace gridclock
