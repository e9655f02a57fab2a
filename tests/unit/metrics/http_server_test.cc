#include "server/metrics/http_server.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/http_client.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<std::unique_ptr<MetricsServer>> Serve(MetricsServer::Pages pages) {
  return MetricsServer::Create({.address = "127.0.0.1:0"}, std::move(pages));
}
// One page, at /metrics.
MetricsServer::Pages Serving(std::function<std::string()> text) {
  return {.page = [text](absl::string_view path,
                         absl::string_view) -> std::optional<MetricsServer::Page> {
            if (path != "/metrics") return std::nullopt;
            return MetricsServer::Page{"text/plain; version=0.0.4", text()};
          },
          .not_ready = [] { return std::string(); }};
}
MetricsServer::Pages Small() {
  return Serving([] { return std::string("a 1\n"); });
}
// Cuts nobody off: who is answered beside clients that hang does not owe it to their end.
absl::StatusOr<std::unique_ptr<MetricsServer>> ServePatiently(MetricsServer::Pages pages) {
  return MetricsServer::Create(
      {.address = "127.0.0.1:0", .timeout = absl::Hours(1), .answer_timeout = absl::Hours(1)},
      std::move(pages));
}
// A minute from now.
std::chrono::steady_clock::time_point Late() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}
// Whether /metrics is answered with this text, and not silent for longer than `limit`.
bool Answers(const MetricsServer& server, absl::string_view text,
             absl::Duration limit = absl::Minutes(1)) {
  const UniqueFd client = Connect(server.port());
  const timeval most = absl::ToTimeval(limit);
  setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
  return SendText(client, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") &&
         absl::EndsWith(ReadAll(client), absl::StrCat("\r\n\r\n", text));
}

TEST(MetricsServerTest, ServesThePages) {
  std::atomic<bool> ready = false;
  MetricsServer::Pages pages = Serving([] { return std::string("gridclock_limit 1\n"); });
  pages.not_ready = [&ready] { return std::string(ready ? "" : "the server ends"); };
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(pages));
  EXPECT_GT(server->port(), 0);
  const std::string metrics = Fetch(server->port(), "/metrics");
  EXPECT_THAT(metrics, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(metrics, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_EQ(BodyOf(metrics), "gridclock_limit 1\n");
  EXPECT_THAT(Fetch(server->port(), "/healthz"), StartsWith("HTTP/1.1 200 "));
  const std::string not_ready = Fetch(server->port(), "/readyz");
  EXPECT_THAT(not_ready, StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(BodyOf(not_ready), "not ready: the server ends\n");
  ready = true;
  EXPECT_THAT(Fetch(server->port(), "/readyz"), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServerTest, AnswersOnlyWhatIsThere) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  EXPECT_THAT(Fetch(server->port(), "/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Fetch(server->port(), "/metrics/../../etc/passwd"), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(Fetch(server->port(), "/metrics?x=1"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Fetch(server->port(), "/metrics%00.json"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Fetch(server->port(), "/%6detrics"), StartsWith("HTTP/1.1 404 "));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    EXPECT_THAT(Fetch(server->port(), "/metrics", method), StartsWith("HTTP/1.1 405 ")) << method;
  }
  EXPECT_EQ(BodyOf(Fetch(server->port(), "/metrics", "HEAD")), "");
}

std::string AnswerTo(int port, const std::string& head) {
  const UniqueFd client = Connect(port);
  EXPECT_TRUE(SendText(client, head));
  return ReadAll(client);
}

// civetweb would allow it to every site, and would let any Host ask.
TEST(MetricsServerTest, NoOtherSiteIsAllowedIn) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  const std::string preflight =
      AnswerTo(server->port(),
               "OPTIONS /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: http://attacker.example\r\n"
               "Access-Control-Request-Method: GET\r\n\r\n");
  EXPECT_THAT(preflight, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(preflight.substr(1), Not(HasSubstr("HTTP/1.1"))) << "two answers";
  const std::string simple = AnswerTo(server->port(),
                                      "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                      "Origin: http://attacker.example\r\n\r\n");
  EXPECT_THAT(preflight + simple, Not(HasSubstr("Access-Control")));
}

TEST(MetricsServerTest, AHostBehindMoreHeadersThanAreKeptIsNotOverlooked) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  const auto behind = [&](int headers) {
    std::string head = "GET /metrics HTTP/1.1\r\n";
    for (int i = 0; i < headers; ++i) absl::StrAppend(&head, "X-", i, ": 1\r\n");
    return AnswerTo(server->port(), head + "Host: attacker.example\r\n\r\n");
  };
  EXPECT_THAT(behind(62), StartsWith("HTTP/1.1 421 "));
  EXPECT_THAT(behind(63), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(behind(100), StartsWith("HTTP/1.1 431 "));
}

TEST(MetricsServerTest, WhatIsNoPathIsAnsweredToo) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  for (const char* line : {"GET *", "OPTIONS *", "GET http://127.0.0.1:1/metrics",
                           "GET http://attacker.example/metrics", "GET metrics", "CONNECT a:1"}) {
    const std::string head = absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(AnswerTo(server->port(), head), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << line;
  }
  const UniqueFd silent = Connect(server->port());
  shutdown(silent.get(), SHUT_WR);
  EXPECT_EQ(ReadAll(silent), "");
}

// A page of another site whose name leads to 127.0.0.1 sends that name.
TEST(MetricsServerTest, NamesOfOthersAreNotAnsweredOnLoopback) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  const auto ask = [](int port, const std::string& host) {
    return AnswerTo(port, absl::StrCat("GET /metrics HTTP/1.1\r\n", host, "\r\n\r\n"));
  };
  for (const char* host :
       {"Host: attacker.example", "Host: attacker.example:8471",
        "Host: ", "Host: 127.0.0.1.attacker.example", "host: localhost.attacker.example:1",
        "Host: [attacker.example]:8471", "Host: attacker.example.", "Host: 127.0.0.1 a.example",
        "Host: user@localhost", "Host: ...", "Host: [localhost]", "Host: [::1]attacker.example",
        "Host: [::1].attacker.example", "Host: [::1"}) {
    EXPECT_THAT(ask(server->port(), host), StartsWith("HTTP/1.1 421 ")) << host;
  }
  for (const char* host :
       {"Host: 127.0.0.1:8471", "Host: localhost:8471", "Host: LOCALHOST", "Host: localhost.",
        "Host: localhost.:8471", "Host: [::1]:8471", "Host: [::1]", "Host: 127.1:8471",
        "Host: 0x7f000001", "Host: [::ffff:127.0.0.1]:8471", "Host: [0:0:0:0:0:0:0:1]",
        "Host: 127.0.0.1.", "Host: 10.0.0.7", "X: without"}) {
    EXPECT_THAT(ask(server->port(), host), StartsWith("HTTP/1.1 200 ")) << host;
  }
  ASSERT_OK_AND_ASSIGN(const auto open, MetricsServer::Create({.address = "0.0.0.0:0"}, Small()));
  EXPECT_THAT(ask(open->port(), "Host: node1.example:8471"), StartsWith("HTTP/1.1 200 "));
}

// Connected to a server that listens on this name or address.
UniqueFd ConnectTo(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  EXPECT_EQ(getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found), 0) << host;
  UniqueFd fd;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    fd = UniqueFd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) break;
  }
  freeaddrinfo(found);
  return fd;
}

TEST(MetricsServerTest, HoweverLoopbackIsWrittenItIsLoopback) {
  struct Spelling {
    std::string listen, connect;
  };
  int listened = 0;
  for (const Spelling& spelling : {Spelling{"127.0.0.1", "127.0.0.1"},
                                   {"127.3.2.1", "127.3.2.1"},
                                   {"localhost", "localhost"},
                                   {"LocalHost", "localhost"},
                                   {"[::1]", "::1"},
                                   {"[0:0:0:0:0:0:0:1]", "::1"}}) {
    const auto server = MetricsServer::Create({.address = spelling.listen + ":0"}, Small());
    if (!server.ok() && spelling.connect == "::1") continue;  // A machine without IPv6.
    ASSERT_THAT(server.status(), IsOk()) << spelling.listen;
    ++listened;
    const auto ask = [&](const std::string& host) {
      const UniqueFd client = ConnectTo(spelling.connect, (*server)->port());
      EXPECT_TRUE(SendText(client, "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n"));
      return ReadAll(client);
    };
    EXPECT_THAT(ask("attacker.example"), StartsWith("HTTP/1.1 421 ")) << spelling.listen;
    const std::string own = absl::StrCat(spelling.listen, ":", (*server)->port());
    EXPECT_THAT(ask(own), StartsWith("HTTP/1.1 200 ")) << spelling.listen;
  }
  EXPECT_GE(listened, 4);
}

TEST(MetricsServerTest, SaysWhichAddressItCannotHave) {
  ASSERT_OK_AND_ASSIGN(const auto first, Serve(Small()));
  const std::string taken = absl::StrCat("127.0.0.1:", first->port());
  EXPECT_THAT(MetricsServer::Create({.address = taken}, Small()),
              StatusIs(absl::StatusCode::kUnavailable,
                       absl::StrCat("cannot listen on ", taken, ": Address already in use")));
}

TEST(MetricsServerTest, RefusesWhatIsNoAddress) {
  for (const std::string address : {"", "8471", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999",
                                    "127.0.0.1:84s", ":8471", "127.0.0.1:1,127.0.0.1:2"}) {
    EXPECT_THAT(MetricsServer::Create({.address = address}, Small()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'" + address + "'")));
  }
}

TEST(MetricsServerTest, AHungScraperHoldsNobodyUp) {
  // Larger than any socket buffer, so that a client which does not read blocks its thread.
  const std::string large(64 << 20, 'x');
  std::atomic<bool> serve_large = true;
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServePatiently(Serving([&] { return serve_large ? large : "a 1\n"; })));
  std::vector<UniqueFd> hung;
  hung.push_back(Connect(server->port()));  // Says nothing.
  hung.push_back(Connect(server->port()));  // Stops in the middle of its request.
  ASSERT_TRUE(SendText(hung[1], "GET /metrics HTTP/1.1\r\nHost:"));
  hung.push_back(Connect(server->port()));  // Never reads its answer.
  ASSERT_TRUE(SendText(hung[2], "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  char first = 0;
  ASSERT_EQ(recv(hung[2].get(), &first, 1, 0), 1);
  serve_large = false;

  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Answers(*server, "a 1\n"));
}

TEST(MetricsServerTest, OnePageForScrapersAndOneForPeopleIsMadeAtATime) {
  std::atomic<int> making = 0, most = 0;
  const auto late = Late();
  const auto page = [&] {
    const int now = ++making;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    // The first waits for one of the other kind, and each leaves time for a third.
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (most < 2 && std::chrono::steady_clock::now() < late);
    --making;
    return MetricsServer::Page{"text/plain", "a 1\n"};
  };
  MetricsServer::Pages pages = Small();
  pages.page = [&](absl::string_view, absl::string_view) { return page(); };
  ASSERT_OK_AND_ASSIGN(const auto server, ServePatiently(pages));
  std::atomic<int> answered = 0;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 50; ++i) {
    for (const char* path : {"/metrics", "/runs"}) {
      readers.emplace_back(
          [&, path] { answered += BodyOf(Fetch(server->port(), path)) == "a 1\n"; });
    }
  }
  readers.clear();
  EXPECT_EQ(answered, 100);
  EXPECT_EQ(most, 2);
}

TEST(MetricsServerTest, ThePageIsToldWhatTheClientTakes) {
  MetricsServer::Pages pages = Small();
  pages.page = [](absl::string_view, absl::string_view accept) {
    return MetricsServer::Page{"text/html", std::string(accept)};
  };
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(pages));
  const UniqueFd client = Connect(server->port());
  ASSERT_TRUE(SendText(
      client, "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: application/json;q=1\r\n\r\n"));
  const std::string answer = ReadAll(client);
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/html\r\n"));
  EXPECT_THAT(answer, HasSubstr("default-src 'none'"));
  EXPECT_EQ(BodyOf(answer), "application/json;q=1");
}

TEST(MetricsServerTest, GiantHeadersAreRefused) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  for (const std::string& head :
       {"GET /" + std::string(1 << 20, 'a') + " HTTP/1.1\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nX: " + std::string(1 << 20, 'b') + "\r\n\r\n",
        std::string("\x16\x03\x01\x02\x00 no HTTP at all\r\n\r\n", 24)}) {
    const UniqueFd client = Connect(server->port());
    SendText(client, head);  // It may hang up before it has read all of that.
    EXPECT_THAT(ReadAll(client), Not(HasSubstr(" 200 OK")));
  }
  EXPECT_EQ(BodyOf(Fetch(server->port(), "/metrics")), "a 1\n");
}

TEST(MetricsServerTest, WhatIsNoHttpIsAnsweredWithTheSameHeaders) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  const UniqueFd client = Connect(server->port());
  ASSERT_TRUE(SendText(client, "nonsense\r\n\r\n"));
  EXPECT_THAT(ReadAll(client),
              AllOf(HasSubstr(" 400 Bad Request\r\n"), HasSubstr("X-Content-Type-Options: nosniff"),
                    Not(HasSubstr("Date:"))));
}

// Twice as many as there are threads, that say or read a little now and then and never end: they
// are cut off all the same.
class SlowClients {
 public:
  // Each sends `begin` and then, ten times a second, `more`; or reads where there is no more.
  SlowClients(int port, const std::string& begin, std::string more) : more_(std::move(more)) {
    for (UniqueFd& client : clients_) {
      client = Connect(port);
      EXPECT_TRUE(SendText(client, begin));
    }
    thread_ = std::thread([this] { Trickle(); });
  }
  ~SlowClients() {
    ended_ = true;
    thread_.join();
  }

 private:
  void Trickle() const {
    std::vector<char> buffer(256 << 10);
    while (!ended_) {
      for (const UniqueFd& client : clients_) {
        if (!more_.empty()) SendText(client, more_);
        if (more_.empty()) recv(client.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  std::array<UniqueFd, 8> clients_;
  const std::string more_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class SlowClientsTest : public ::testing::Test {
 protected:
  SlowClientsTest() {
    MetricsServer::Pages pages = Small();
    pages.page = [](absl::string_view path, absl::string_view) {
      // Larger than any socket buffer: at the pace of SlowClients half a minute's worth.
      return MetricsServer::Page{"text/plain", path == "/large" ? std::string(64 << 20, 'x') : "a"};
    };
    auto server = MetricsServer::Create({.address = "127.0.0.1:0",
                                         .threads = 4,
                                         .timeout = absl::Seconds(1),
                                         .answer_timeout = absl::Seconds(1)},
                                        std::move(pages));
    EXPECT_THAT(server.status(), IsOk());
    server_ = *std::move(server);
  }

  // Whether somebody else is answered as soon as a scraper wants.
  bool AnswersSoon() const { return Answers(*server_, "a", absl::Seconds(20)); }

  std::unique_ptr<MetricsServer> server_;
};

TEST_F(SlowClientsTest, HeadersThatTrickleHoldNobodyUp) {
  const SlowClients slow(server_->port(), "GET /metrics HTTP/1.1\r\n", "X: y\r\n");
  EXPECT_TRUE(AnswersSoon());
}

TEST_F(SlowClientsTest, BodiesThatTrickleHoldNobodyUp) {
  for (const char* body : {"Content-Length: 1000000", "Transfer-Encoding: chunked"}) {
    const SlowClients slow(
        server_->port(), absl::StrCat("GET /metrics HTTP/1.1\r\n", body, "\r\n\r\n"), "1\r\nx\r\n");
    EXPECT_TRUE(AnswersSoon()) << body;
  }
}

TEST_F(SlowClientsTest, ReadersThatTrickleHoldNobodyUp) {
  const SlowClients slow(server_->port(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "");
  EXPECT_TRUE(AnswersSoon());
}

// Fifty that never end their request and fifty that never read their answer.
TEST(MetricsServerTest, AnswersAtOnceThoughAHundredHang) {
  std::atomic<int> large = 0;
  MetricsServer::Pages pages = Small();
  pages.page = [&large](absl::string_view path, absl::string_view) {
    if (path != "/large") return MetricsServer::Page{"text/plain", "a"};
    ++large;
    return MetricsServer::Page{"text/plain", std::string(8 << 20, 'x')};
  };
  ASSERT_OK_AND_ASSIGN(const auto server, ServePatiently(pages));
  std::vector<UniqueFd> hung;
  for (int i = 0; i < 100; ++i) {
    hung.push_back(Connect(server->port()));
    ASSERT_TRUE(SendText(hung.back(), i % 2 == 0
                                          ? "GET /metrics HTTP/1.1\r\nHost: x\r\n"
                                          : "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  for (const auto late = Late(); large < 50 && std::chrono::steady_clock::now() < late;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(large, 50);
  EXPECT_TRUE(Answers(*server, "a"));
}

std::chrono::nanoseconds TimeToEndOnceUsed(const std::string& address) {
  auto server = *MetricsServer::Create({.address = address}, Small());
  EXPECT_TRUE(Answers(*server, "a 1\n"));
  const auto start = std::chrono::steady_clock::now();
  server.reset();
  return std::chrono::steady_clock::now() - start;
}

// Alone it would look every two seconds, each time. What a busy machine adds it does not always
// add.
TEST(MetricsServerTest, EndsSoonAfterItWasUsed) {
  constexpr std::chrono::milliseconds kSoon(1500);
  for (const std::string address : {"127.0.0.1:0", "0.0.0.0:0"}) {
    std::chrono::nanoseconds least = TimeToEndOnceUsed(address);
    for (int more = 9; more > 0 && least >= kSoon; --more) {
      least = std::min(least, TimeToEndOnceUsed(address));
    }
    EXPECT_LT(least, kSoon) << address;
  }
}

TEST(MetricsServerTest, ComesBackWhenAllThreadsWereHung) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      MetricsServer::Create(
          {.address = "127.0.0.1:0", .threads = 2, .timeout = absl::Milliseconds(300)}, Small()));
  const UniqueFd hung[] = {Connect(server->port()), Connect(server->port()),
                           Connect(server->port())};
  EXPECT_EQ(BodyOf(Fetch(server->port(), "/metrics")), "a 1\n");
}

}  // namespace
}  // namespace gridclock
