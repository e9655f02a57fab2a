#include "server/rpc/connection_calls.h"

#include <deque>
#include <limits>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/address.h"

namespace gridclock {
namespace {

sockaddr_storage From(const char* ip, std::uint16_t port) {
  sockaddr_storage address = Address(ip);
  if (address.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  return address;
}

constexpr std::size_t kFields = 20;  // Of a usual call.

class ConnectionCallsTest : public ::testing::Test {
 protected:
  std::shared_ptr<ConnectionCalls::Connection> Connect(std::uint16_t port) {
    return calls_.Add(From("10.0.0.7", port));
  }
  void Begin(std::uint16_t port, int count) {
    for (int i = 0; i < count; ++i) {
      places_.emplace_back(calls_, absl::StrCat("ipv4:10.0.0.7:", port), kFields);
    }
  }

  using Connections = std::deque<std::shared_ptr<ConnectionCalls::Connection>>;
  // Together more than kMostBytesInAll; each may have eight calls open.
  Connections ThoseThatWaitForMuch() {
    calls_.SetStreams(8);
    Connections all;
    for (std::uint16_t port = 1; port <= 40; ++port) {
      all.push_back(Connect(port));
      for (int i = 0; i < 200; ++i) all.back()->Begin(10, now_);
    }
    return all;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  ConnectionCalls calls_;
  std::deque<ConnectionCalls::Place> places_;
};

TEST_F(ConnectionCallsTest, ACallCountsAsLongAsItLives) {
  const auto connection = Connect(4711);
  Begin(4711, 3);
  EXPECT_EQ(connection->held(), 3 * ConnectionCalls::kUsualBytes);
  places_.pop_front();
  EXPECT_EQ(connection->held(), 2 * ConnectionCalls::kUsualBytes);
}

TEST_F(ConnectionCallsTest, OneThatHasTooManyIsCutOffAndNoOther) {
  const auto greedy = Connect(1), modest = Connect(2);
  Begin(2, ConnectionCalls::kMost);
  Begin(1, ConnectionCalls::kMost);
  EXPECT_FALSE(greedy->cut_off());
  Begin(1, 1);
  EXPECT_TRUE(greedy->cut_off());
  EXPECT_FALSE(modest->cut_off());
}

TEST_F(ConnectionCallsTest, CallsOfManyFieldsAreMany) {
  const auto connection = Connect(1);
  for (int i = 0; i < ConnectionCalls::kMost / 4; ++i) {
    places_.emplace_back(calls_, "ipv4:10.0.0.7:1", 1000);
  }
  EXPECT_TRUE(connection->cut_off());
}

TEST_F(ConnectionCallsTest, WhereAllTogetherHaveTooManyThoseWithFewGoOn) {
  std::deque<std::shared_ptr<ConnectionCalls::Connection>> many;
  for (std::uint16_t port = 1; port <= 8; ++port) {
    many.push_back(Connect(port));
    Begin(port, ConnectionCalls::kMost);
  }
  const auto modest = Connect(9), greedy = Connect(10);
  Begin(9, ConnectionCalls::kFew);
  EXPECT_FALSE(modest->cut_off());
  Begin(10, ConnectionCalls::kFew + 1);
  EXPECT_TRUE(greedy->cut_off());
}

TEST_F(ConnectionCallsTest, WhoMayHaveMoreOpenMayHaveMore) {
  calls_.SetStreams(1000);
  const auto connection = Connect(1);
  Begin(1, ConnectionCalls::kMost + 4000);
  EXPECT_FALSE(connection->cut_off());
  Begin(1, 1);
  EXPECT_TRUE(connection->cut_off());
}

TEST_F(ConnectionCallsTest, TheNextConnectionFromAPortIsAnother) {
  const auto first = Connect(4711);
  Begin(4711, ConnectionCalls::kMost + 1);
  EXPECT_TRUE(first->cut_off());
  const auto second = Connect(4711);
  Begin(4711, 1);
  EXPECT_FALSE(second->cut_off());
  EXPECT_EQ(second->held(), 1 * ConnectionCalls::kUsualBytes);
}

// As where the server has two addresses: which of them a call came to is not known.
TEST_F(ConnectionCallsTest, TwoThatAreOpenFromOnePortAreCountedAsOne) {
  const auto first = Connect(4711), decoy = Connect(4711);
  Begin(4711, ConnectionCalls::kMost + 1);
  EXPECT_TRUE(first->cut_off());
  EXPECT_TRUE(decoy->cut_off());
}

TEST_F(ConnectionCallsTest, NeighboursInANetworkOfIpv6AreTwo) {
  const auto greedy = calls_.Add(From("2001:db8::1", 4711)),
             modest = calls_.Add(From("2001:db8::2", 4711));
  for (int i = 0; i <= ConnectionCalls::kMost; ++i) {
    places_.emplace_back(calls_, "ipv6:%5B2001:db8::1%5D:4711", kFields);
  }
  EXPECT_TRUE(greedy->cut_off());
  EXPECT_FALSE(modest->cut_off());
  EXPECT_EQ(modest->held(), 0 * ConnectionCalls::kUsualBytes);
}

// ---- Those that are not handed on yet. ----

TEST_F(ConnectionCallsTest, OneOfWhichTooManyWaitIsCutOff) {
  const auto connection = Connect(1);
  int begun = 0;
  while (begun < 10'000 && connection->Begin(10, now_)) ++begun;
  EXPECT_TRUE(connection->cut_off());
  EXPECT_GT(begun, ConnectionCalls::kFew);
  EXPECT_LT(begun, 2 * ConnectionCalls::kFew);
}

TEST_F(ConnectionCallsTest, ThoseThatAreHandedOnWaitNoMore) {
  const auto connection = Connect(1);
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(connection->Begin(i % 100, now_));
    Begin(1, 1);
    places_.clear();
  }
  EXPECT_FALSE(connection->cut_off());
}

// gRPC hands none on that it refuses itself, and a connection may live for weeks.
TEST_F(ConnectionCallsTest, OneThatIsNeverHandedOnIsForgottenInTime) {
  for (const int calls_of_a_period : {20, 1000}) {
    const auto connection = Connect(1);
    for (int i = 0; i < 10'000; ++i) {
      ASSERT_TRUE(connection->Begin(10, now_)) << i;
      // One of twenty is refused, or all of few.
      if (calls_of_a_period == 20 || i % 20 == 0) {
        ASSERT_TRUE(connection->Begin(10, now_)) << i;
      }
      connection->NotePause(now_);
      Begin(1, 1);
      places_.clear();
      now_ += ConnectionCalls::kPeriod / calls_of_a_period;
    }
  }
}

// As long as bytes come without a pause gRPC hands nothing on, and has memory for all of it.
TEST_F(ConnectionCallsTest, NothingIsForgottenOfOneThatSendsWithoutAPause) {
  const auto connection = Connect(1);
  int begun = 0;
  for (; begun < 10'000 && connection->Begin(10, now_); ++begun)
    now_ += ConnectionCalls::kPeriod / 50;
  EXPECT_TRUE(connection->cut_off());
  EXPECT_LT(begun, 2 * ConnectionCalls::kFew);
}

// The pause of one socket says nothing of what came by the other.
TEST_F(ConnectionCallsTest, NorOfTwoThatAreCountedAsOne) {
  const auto connection = Connect(1), decoy = Connect(1);
  int begun = 0;
  for (; begun < 10'000 && connection->Begin(10, now_); ++begun) {
    decoy->NotePause(now_);
    now_ += ConnectionCalls::kPeriod / 50;
  }
  EXPECT_LT(begun, 2 * ConnectionCalls::kFew);
}

TEST_F(ConnectionCallsTest, AnyNumberOfStreamsMayBeAllowed) {
  calls_.SetStreams(std::numeric_limits<int>::max());
  const auto connection = Connect(1);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(connection->Begin(10, now_));
}

TEST_F(ConnectionCallsTest, WhatWaitsOnAQuietConnectionIsForgottenToo) {
  const Connections quiet = ThoseThatWaitForMuch();
  const auto next = Connect(100);
  const auto burst = [&] {
    int begun = 0;
    while (begun < 100 && next->Begin(10, now_)) ++begun;
    return begun;
  };
  for (const auto& connection : quiet) connection->NotePause(now_);
  now_ += ConnectionCalls::kPeriod;
  calls_.ForgetOld(now_);
  EXPECT_EQ(burst(), 100);
}

TEST_F(ConnectionCallsTest, WhatIsHandedOnInTimeIsNotForgottenTwice) {
  const auto connection = Connect(1);
  for (int period = 0; period < 5; ++period) {
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(connection->Begin(10, now_));
    connection->NotePause(now_);
    now_ += ConnectionCalls::kPeriod / 2;
    ASSERT_TRUE(connection->Begin(10, now_));
    Begin(1, 101);
    places_.clear();
  }
  int begun = 0;
  while (begun < 10'000 && connection->Begin(10, now_)) ++begun;
  EXPECT_GT(begun, ConnectionCalls::kFew);
  EXPECT_LT(begun, 2 * ConnectionCalls::kFew);
}

TEST_F(ConnectionCallsTest, CallsOfManyFieldsAreFewer) {
  const auto connection = Connect(1);
  int begun = 0;
  while (begun < 10'000 && connection->Begin(1000, now_)) ++begun;
  EXPECT_GT(begun, ConnectionCalls::kFew / 20);
  EXPECT_LT(begun, ConnectionCalls::kFew / 4);
}

// What those took that are gone is no more in the sum.
TEST_F(ConnectionCallsTest, WhereMuchWaitsInAllThoseWithLittleGoOn) {
  Connections many = ThoseThatWaitForMuch();
  const auto greedy = Connect(100), modest = Connect(101);
  EXPECT_TRUE(modest->Begin(10, now_));
  int begun = 0;
  while (begun < 100 && greedy->Begin(10, now_)) ++begun;
  EXPECT_LE(begun, 9);
  EXPECT_FALSE(modest->cut_off());
  many.clear();
  const auto next = Connect(102);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(next->Begin(10, now_));
}

// Such are not forgotten while they are open, however many come and go beside them.
TEST_F(ConnectionCallsTest, KnowsAnOpenConnectionBehindThousandsThatCame) {
  const auto connection = Connect(4711);
  for (std::uint16_t port = 10'000; port < 20'000; ++port) Connect(port);
  Begin(4711, 1);
  EXPECT_EQ(connection->held(), 1 * ConnectionCalls::kUsualBytes);
}

TEST_F(ConnectionCallsTest, AStrangersCallHurtsNobody) {
  Begin(5, 1);
  places_.emplace_back(calls_, "unix:/nowhere", kFields);
  places_.emplace_back(calls_, "", kFields);
}

}  // namespace
}  // namespace gridclock
