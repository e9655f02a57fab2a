#include "server/rpc/acceptor.h"

#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "absl/time/clock.h"
#include "tests/support/address.h"
#include "tests/support/http_client.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using Verdict = ConnectionTable::Verdict;
using ::testing::HasSubstr;

class QuietRpcs final : public RpcObserver {
 public:
  void OnRpcStarted(RpcMethod) override {}
  void OnRpcFinished(RpcMethod, const absl::Status&, absl::Duration) override {}
};

// Until it ends no descriptor can be opened in this process.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {.rlim_cur = kStandard, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  static constexpr rlim_t kStandard = 3;  // Input, output, errors; poll() takes no more than this.
  rlimit before_{};
};

absl::Duration CpuTime() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
}

UniqueFd Socket() {
  return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

UniqueFd ConnectFrom(const char* host, int port) {
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from{}, to{};
  from.sin_family = to.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, host, &from.sin_addr), 1);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(bind(client.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
  EXPECT_EQ(connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  return client;
}

// An acceptor that hands on the first connection.
class OneConnection : public ::testing::Test {
 protected:
  void SetUp() override {
    auto acceptor = Acceptor::Create({.listen = Resolve("127.0.0.1:0").value()}, clock_, observer_);
    ASSERT_THAT(acceptor, IsOk());
    acceptor_ = *std::move(acceptor);
    acceptor_->Start([this](UniqueFd fd) { taken_.set_value(std::move(fd)); });
  }

  const MonotonicClock clock_ = {};
  QuietRpcs observer_;
  std::promise<UniqueFd> taken_;
  std::unique_ptr<Acceptor> acceptor_;
};

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

TEST(ConnectionTable, SweepForgetsWhatWasClosed) {
  ConnectionTable table(4, 4);
  UniqueFd a = Socket(), b = Socket();
  table.Take(a.get(), "1");
  table.Take(b.get(), "1");
  a.reset();
  EXPECT_EQ(table.size(), 2u);
  table.Sweep();
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.busiest_peer(), 1u);
}

TEST_F(OneConnection, AClosedConnectionIsNotOpenAtOnce) {
  const UniqueFd client = Connect(acceptor_->port());
  UniqueFd server = taken_.get_future().get();
  EXPECT_EQ(acceptor_->usage().connections, 1u);
  EXPECT_EQ(acceptor_->usage().busiest_peer, 1u);
  server.reset();
  EXPECT_EQ(acceptor_->usage().connections, 0u);
  EXPECT_EQ(acceptor_->usage().busiest_peer, 0u);
}

// A listener on [::] takes both families: those of IPv4 are not one peer.
TEST(Acceptor, CountsConnectionsByTheSiteThatTheyComeFrom) {
  const MonotonicClock clock;
  QuietRpcs observer;
  auto acceptor = Acceptor::Create({.listen = Resolve("[::]:0").value(), .peer_connections = 1},
                                   clock, observer);
  if (!acceptor.ok()) GTEST_SKIP() << "no IPv6 here: " << acceptor.status();
  std::vector<UniqueFd> clients, taken;
  for (const char* from : {"127.0.0.2", "127.0.0.3", "127.0.0.2"}) {
    clients.push_back(ConnectFrom(from, (*acceptor)->port()));
  }
  std::promise<void> two;
  (*acceptor)->Start([&](UniqueFd fd) {
    taken.push_back(std::move(fd));
    if (taken.size() == 2) two.set_value();
  });
  two.get_future().wait();
  // The third is closed.
  char none = 0;
  EXPECT_EQ(recv(clients[2].get(), &none, 1, 0), 0);
  EXPECT_EQ((*acceptor)->usage().connections, 2u);
  EXPECT_EQ((*acceptor)->usage().busiest_peer, 1u);
  (*acceptor)->Stop();
}

// The spare descriptor is lost at once here, as where another thread is quicker.
TEST_F(OneConnection, WithoutADescriptorItWaitsAndThenServes) {
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoDescriptors none;
    ASSERT_TRUE(ConnectTo(client, acceptor_->port()));
    const absl::Duration before = CpuTime();
    absl::SleepFor(absl::Seconds(1));
    EXPECT_LT(CpuTime() - before, absl::Milliseconds(300)) << "it spins";
    EXPECT_TRUE(acceptor_->alive());
  }
  auto accepted = taken_.get_future();
  ASSERT_EQ(accepted.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  EXPECT_TRUE(accepted.get());
}

TEST(IsLoopback, TellsOwnAddressesFromOthers) {
  for (const char* own : {"127.0.0.1:0", "127.9.9.9:80", "[::1]:8470"}) {
    EXPECT_TRUE(IsLoopback(Resolve(own).value())) << own;
  }
  for (const char* open : {"0.0.0.0:0", "[::]:8470", "10.1.2.3:1"}) {
    EXPECT_FALSE(IsLoopback(Resolve(open).value())) << open;
  }
}

TEST(IsLoopback, ANameThatAlsoStandsForAPublicAddressIsPublic) {
  const sockaddr_storage own4 = Address("127.0.0.1"), own6 = Address("::1");
  const sockaddr_storage open4 = Address("10.1.2.3"), open6 = Address("fe80::1");
  EXPECT_TRUE(IsLoopback({"name:1", {own6, own4}}));
  EXPECT_FALSE(IsLoopback({"name:1", {own4, open4}}));
  EXPECT_FALSE(IsLoopback({"name:1", {open4, own4}}));
  EXPECT_FALSE(IsLoopback({"name:1", {own4, own6, open6}}));
  EXPECT_FALSE(IsLoopback({}));
}

// Asked again, the name could stand for an address that others reach.
TEST(Acceptor, BindsWhatWasLookedUpAndAsksForNoNameAgain) {
  const MonotonicClock clock;
  QuietRpcs observer;
  const ListenAddress listen{"no-such-name.invalid:0", {Address("127.0.0.1")}};
  ASSERT_OK_AND_ASSIGN(const auto acceptor, Acceptor::Create({.listen = listen}, clock, observer));
  EXPECT_EQ(acceptor->address(), absl::StrCat("no-such-name.invalid:", acceptor->port()));
  const UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(ConnectTo(client, acceptor->port()));
}

TEST(IsLoopback, SaysWhatAnAddressLooksLike) {
  for (const char* wrong : {"", "8470", "localhost", ":1", "127.0.0.1:70000", "127.0.0.1:x"}) {
    EXPECT_THAT(Resolve(wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
  }
}

}  // namespace
}  // namespace gridclock
