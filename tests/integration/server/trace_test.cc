// W3C traces through a real server: what it takes, gives back and keeps.
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/http_client.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string TraceParentOf(const std::shared_ptr<grpc::Channel>& channel,
                          const std::vector<std::string>& sent) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  for (const std::string& value : sent) context.AddMetadata("traceparent", value);
  EXPECT_THAT(
      RawCall(channel, kRunMethod, {InlineRequest("square", {1}).SerializeAsString()}, context)
          .status,
      IsOk());
  const auto [begin, end] = context.GetServerInitialMetadata().equal_range("traceparent");
  EXPECT_EQ(std::distance(begin, end), sent.empty() ? 0 : 1);
  return begin == end ? "" : std::string(begin->second.data(), begin->second.size());
}

std::string Page(const ServerProcess& server, const std::string& path) {
  const std::string& address = server.metrics_address();
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return BodyOf(Fetch(port, path));
}

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

// Who sent what ended a worker, by the id that its client knows.
TEST(Trace, IsTakenReturnedAndKeptWithTheRun) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const std::string sent = absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01");
  const std::string got = TraceParentOf(channel, {sent});
  EXPECT_THAT(got, testing::MatchesRegex(absl::StrCat("00-", kTrace, "-[0-9a-f]{16}-01")));
  EXPECT_NE(got, sent);  // The span is the server's own.
  const json runs = json::parse(Page(*server, "/runs.json"), nullptr, false);
  ASSERT_TRUE(runs.is_array() && !runs.empty());
  EXPECT_EQ(runs[0]["trace_id"], kTrace);
  EXPECT_THAT(Page(*server, absl::StrCat("/runs/", runs[0]["id"].get<int>())), HasSubstr(kTrace));
}

TEST(Trace, WithoutOneTheRunHasOneThatIsNotReturned) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  EXPECT_EQ(TraceParentOf(Connect(server->address()), {}), "");
  const json runs = json::parse(Page(*server, "/runs.json"), nullptr, false);
  ASSERT_TRUE(runs.is_array() && !runs.empty());
  EXPECT_THAT(runs[0]["trace_id"].get<std::string>(), testing::MatchesRegex("[0-9a-f]{32}"));
}

TEST(Trace, InsteadOfOneThatIsNotValidTheServerBeginsOne) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const std::string good = absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01");
  for (const std::vector<std::string>& sent : std::vector<std::vector<std::string>>{
           {""},
           {good, good},
           {"00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"},
           {absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01 event=forged")},
           {std::string(4000, 'a')}}) {
    const std::string got = TraceParentOf(channel, sent);
    EXPECT_THAT(got, testing::MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-00"));
    EXPECT_THAT(got, Not(HasSubstr(kTrace)));
  }
  EXPECT_THAT(Page(*server, "/runs.json"), Not(HasSubstr("forged")));
  EXPECT_THAT(server->FinalLog(), Not(HasSubstr("forged")));
}

}  // namespace
}  // namespace gridclock
