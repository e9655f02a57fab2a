#include "server/rpc/client_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

absl::Time At(double seconds) {
  return kStart + absl::Seconds(seconds);
}

ClientWait Make(double stall, double rate) {
  Limits limits;
  limits.stream_stall_seconds = stall;
  limits.stream_bytes_per_second = rate;
  return {limits, kStart};
}

TEST(ClientWait, OneMessageMayTakeTheStallTime) {
  ClientWait wait = Make(10, 1e6);
  wait.Set(true, At(0));
  EXPECT_FALSE(wait.TooLong(At(9.9)));
  EXPECT_TRUE(wait.TooLong(At(10)));
  EXPECT_EQ(wait.Why("send").code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(wait.Why("send"), ReasonIs("STREAM_STALLED"));
}

// A byte every nine seconds never stalls; in all it is far too slow.
TEST(ClientWait, DripsAreNotEnough) {
  ClientWait wait = Make(10, 100);
  wait.Set(true, At(0));
  wait.Moved(1, At(9));
  EXPECT_FALSE(wait.TooLong(At(9.9)));
  EXPECT_TRUE(wait.TooLong(At(10.1)));
}

TEST(ClientWait, BytesBringTime) {
  ClientWait wait = Make(10, 100);
  wait.Set(true, At(0));
  for (int second = 5; second <= 500; second += 5) {
    wait.Moved(500, At(second));
    EXPECT_FALSE(wait.TooLong(At(second + 4))) << second;
  }
}

TEST(ClientWait, WhatIsNotTheClientsTimeDoesNotCount) {
  ClientWait wait = Make(10, 100);
  wait.Set(true, At(0));
  wait.Moved(1, At(5));
  wait.Set(false, At(5));
  EXPECT_FALSE(wait.TooLong(At(1000)));
  wait.Set(true, At(1000));
  EXPECT_FALSE(wait.TooLong(At(1004)));
  EXPECT_TRUE(wait.TooLong(At(1005.1)));
}

}  // namespace
}  // namespace gridclock
