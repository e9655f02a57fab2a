#include "server/core/idle_pages.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class IdlePagesTest : public ::testing::Test {
 protected:
  // As many looks as it takes, `free_mib` at each.
  void Pass(absl::Duration time, std::uint64_t free_mib) {
    free_ = free_mib * kMiB;
    for (const absl::Time end = now_ + time; now_ < end; now_ += IdlePages::kPause)
      pages_.Tick(now_);
  }

  absl::Time now_ = absl::UnixEpoch();
  std::uint64_t free_ = 0;
  int trims_ = 0;
  IdlePages pages_{{.free_bytes = [this] { return free_; }, .trim = [this] { ++trims_; }}};
};

TEST_F(IdlePagesTest, WhatAWaveLeavesIsGivenBackOnce) {
  Pass(absl::Seconds(30), 5);
  Pass(absl::Seconds(10), 900);
  EXPECT_EQ(trims_, 0);
  Pass(absl::Seconds(60), 900);
  EXPECT_EQ(trims_, 1);
}

TEST_F(IdlePagesTest, ALittleIsKept) {
  Pass(absl::Minutes(5), 127);
  EXPECT_EQ(trims_, 0);
}

TEST_F(IdlePagesTest, WhatIsUsedNowAndThenIsKept) {
  for (int round = 0; round < 20; ++round) {
    Pass(absl::Seconds(6), 900);
    Pass(absl::Seconds(2), 20);
  }
  EXPECT_EQ(trims_, 0);
}

TEST_F(IdlePagesTest, TheNextWaveIsGivenBackToo) {
  Pass(absl::Minutes(1), 900);
  EXPECT_EQ(trims_, 1);
  Pass(absl::Seconds(4), 50);
  Pass(absl::Minutes(1), 900);
  EXPECT_EQ(trims_, 2);
}

}  // namespace
}  // namespace gridclock
