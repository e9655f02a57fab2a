#include "server/rpc/acceptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using Verdict = ConnectionTable::Verdict;
using ::testing::HasSubstr;

UniqueFd Socket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

TEST(ConnectionTable, BoundsAllAndEachPeer) {
  ConnectionTable table(3, 2);
  const UniqueFd a = Socket(), b = Socket(), c = Socket(), d = Socket();
  EXPECT_EQ(table.Take(a.get(), "1"), Verdict::kTaken);
  EXPECT_EQ(table.Take(b.get(), "1"), Verdict::kTaken);
  EXPECT_EQ(table.Take(c.get(), "1"), Verdict::kPeerFull);
  EXPECT_EQ(table.Take(c.get(), "2"), Verdict::kTaken);
  EXPECT_EQ(table.Take(d.get(), "2"), Verdict::kFull);
  EXPECT_EQ(table.busiest_peer(), 2u);
}

TEST(ConnectionTable, WhatWasClosedCountsNoLonger) {
  ConnectionTable table(1, 1);
  UniqueFd a = Socket();
  EXPECT_EQ(table.Take(a.get(), "1"), Verdict::kTaken);
  a.reset();
  const UniqueFd b = Socket();  // Most likely the same number, and another socket.
  EXPECT_EQ(table.Take(b.get(), "1"), Verdict::kTaken);
  EXPECT_EQ(table.size(), 1u);
}

TEST(ConnectionTable, SweepTellsHowManyWereClosed) {
  ConnectionTable table(4, 4);
  UniqueFd a = Socket(), b = Socket();
  table.Take(a.get(), "1");
  table.Take(b.get(), "1");
  a.reset();
  EXPECT_EQ(table.Sweep(), 1u);
  EXPECT_EQ(table.Sweep(), 0u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(IsLoopback, TellsOwnAddressesFromOthers) {
  for (const char* own : {"127.0.0.1:0", "127.9.9.9:80", "[::1]:8470"}) {
    EXPECT_TRUE(IsLoopback(own).value()) << own;
  }
  for (const char* open : {"0.0.0.0:0", "[::]:8470", "10.1.2.3:1"}) {
    EXPECT_FALSE(IsLoopback(open).value()) << open;
  }
}

TEST(IsLoopback, SaysWhatAnAddressLooksLike) {
  for (const char* wrong : {"", "8470", "localhost", ":1", "127.0.0.1:70000", "127.0.0.1:x"}) {
    EXPECT_THAT(IsLoopback(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
  }
}

}  // namespace
}  // namespace gridclock
