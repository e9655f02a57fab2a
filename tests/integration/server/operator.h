// What operators have of a real server: a client, and its log.
#ifndef GRIDCLOCK_TESTS_INTEGRATION_SERVER_OPERATOR_H_
#define GRIDCLOCK_TESTS_INTEGRATION_SERVER_OPERATOR_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cpp/client.h"
#include "tests/support/credentials.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {

using nlohmann::json;
using Code = absl::StatusCode;

inline std::unique_ptr<Client> Operator(const ServerProcess& server,
                                        const std::string& token = "") {
  ClientOptions options{.server = server.address()};
  options.token = token;
  options.retry.max_attempts = 1;
  auto client = Client::Connect(options);
  EXPECT_THAT(client.status(), IsOk());
  return *std::move(client);
}

// Lines of the log with this event, read as JSON: a line that somebody broke would not be.
inline std::vector<json> LinesNow(const ServerProcess& server, const std::string& event) {
  std::vector<json> lines;
  std::string log = server.Log();
  log.resize(log.rfind('\n') + 1);  // One may be on its way.
  for (const absl::string_view line : absl::StrSplit(log, '\n', absl::SkipEmpty())) {
    json read = json::parse(line, nullptr, /*allow_exceptions=*/false);
    EXPECT_FALSE(read.is_discarded()) << line;
    if (!read.is_discarded() && read["event"] == event) lines.push_back(std::move(read));
  }
  return lines;
}

// The same once there are so many: a line is written after its call is answered.
inline std::vector<json> LinesOf(const ServerProcess& server, const std::string& event,
                                 std::size_t count) {
  EXPECT_TRUE(Eventually([&] { return LinesNow(server, event).size() >= count; })) << event;
  std::vector<json> lines = LinesNow(server, event);
  EXPECT_EQ(lines.size(), count) << event;
  lines.resize(count);  // What is missing is null.
  return lines;
}

inline const std::vector<std::string> kJsonLog = {"GRIDCLOCK_LOG_FORMAT=json"};

// Each has the token "NAME-secret".
inline std::string Tokens(const std::vector<std::pair<std::string, std::string>>& people) {
  std::string text;
  for (const auto& [name, roles] : people) {
    absl::StrAppend(&text, name, " ", roles, " ", HashedToken(name + "-secret"));
  }
  return text;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_INTEGRATION_SERVER_OPERATOR_H_
