#include "server/metrics/http_server.h"

#include <atomic>
#include <chrono>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/http_client.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<std::unique_ptr<MetricsServer>> Serve(MetricsServer::Pages pages) {
  return MetricsServer::Create({.address = "127.0.0.1:0"}, std::move(pages));
}
MetricsServer::Pages Small() {
  return {.metrics = [] { return std::string("a 1\n"); }, .ready = [] { return true; }};
}

TEST(MetricsServerTest, ServesThePages) {
  std::atomic<bool> ready = false;
  ASSERT_OK_AND_ASSIGN(const auto server,
                       Serve({.metrics = [] { return std::string("gridclock_limit 1\n"); },
                              .ready = [&ready] { return ready.load(); }}));
  EXPECT_GT(server->port(), 0);
  const std::string metrics = Fetch(server->port(), "/metrics");
  EXPECT_THAT(metrics, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(metrics, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_EQ(BodyOf(metrics), "gridclock_limit 1\n");
  EXPECT_THAT(Fetch(server->port(), "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Fetch(server->port(), "/readyz"), StartsWith("HTTP/1.1 503 "));
  ready = true;
  EXPECT_THAT(Fetch(server->port(), "/readyz"), StartsWith("HTTP/1.1 200 "));
}

TEST(MetricsServerTest, AnswersOnlyWhatIsThere) {
  ASSERT_OK_AND_ASSIGN(const auto server, Serve(Small()));
  EXPECT_THAT(Fetch(server->port(), "/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Fetch(server->port(), "/metrics/../../etc/passwd"), StartsWith("HTTP/1.1 4"));
  EXPECT_THAT(Fetch(server->port(), "/metrics?x=1"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Fetch(server->port(), "/metrics", "POST"), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(BodyOf(Fetch(server->port(), "/metrics", "HEAD")), "");
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
                       Serve({.metrics = [&] { return serve_large ? large : "a 1\n"; },
                              .ready = [] { return true; }}));
  std::vector<UniqueFd> hung;
  hung.push_back(Connect(server->port()));  // Says nothing.
  hung.push_back(Connect(server->port()));  // Stops in the middle of its request.
  ASSERT_TRUE(SendText(hung[1], "GET /metrics HTTP/1.1\r\nHost:"));
  hung.push_back(Connect(server->port()));  // Never reads its answer.
  ASSERT_TRUE(SendText(hung[2], "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n"));
  char first = 0;
  ASSERT_EQ(recv(hung[2].get(), &first, 1, 0), 1);
  serve_large = false;

  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(BodyOf(Fetch(server->port(), "/metrics")), "a 1\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
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
