// Which way the client library sends a call: the server knows best what fits a message.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "client/cpp/client.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

CallInput Ones(const std::string& name, std::int64_t rows, std::int64_t columns,
               std::span<const float> values) {
  return {
      .name = name,
      .value = {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {rows, columns}}}},
      .bytes = {std::as_bytes(values)},
      .generator = {}};
}

// Inputs of 64 KiB make an output of 4 MiB, which no message holds.
TEST(ClientWay, OutputsThatAreTooLargeForAMessageComeByStream) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = server->address()}));
  const std::vector<float> ones(1024 * 16, 1);
  RunCall call;
  call.kernel = "matmul";
  call.inputs = {Ones("a", 1024, 16, ones), Ones("b", 16, 1024, ones)};
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(call));
  ASSERT_EQ(result.outputs.size(), 1U);
  const auto& bytes = result.outputs[0].bytes;
  ASSERT_EQ(bytes.size(), std::size_t{1024} * 1024 * 4);
  const std::vector<float> want(std::size_t{1024} * 1024, 16);
  EXPECT_EQ(std::memcmp(bytes.data(), want.data(), bytes.size()), 0);
}

TEST(ClientWay, AServerThatTakesLittleInAMessageGetsAStream) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-inline-bytes=100"}}));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = server->address()}));
  const std::vector<float> ones(64, 1);
  RunCall call;
  call.kernel = "square";
  call.inputs = {Ones("x", 8, 8, ones)};
  EXPECT_THAT(client->Run(call), IsOk());
}

// 1.5 MiB of ones, squared: how many tries it took.
absl::StatusOr<int> SquareOnes(const Client& client) {
  const std::vector<float> ones(std::size_t{1536} * 256, 1);
  RunCall call;
  call.kernel = "square";
  call.inputs = {Ones("x", 1536, 256, ones)};
  GC_ASSIGN_OR_RETURN(const RunResult result, client.Run(call));
  const auto& bytes = result.outputs.at(0).bytes;
  if (bytes.size() != ones.size() * sizeof(float)) return absl::DataLossError("too few");
  if (std::memcmp(bytes.data(), ones.data(), bytes.size()) != 0)
    return absl::DataLossError("wrong");
  return result.attempts;
}

TEST(ClientWay, AServerThatTakesShortChunksGetsThem) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-chunk-bytes=64K"}}));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = server->address()}));
  EXPECT_EQ(SquareOnes(*client).value_or(0), 2) << "told once how long they may be";
  EXPECT_EQ(SquareOnes(*client).value_or(0), 1) << "and remembered";
}

// gRPC refuses such a message before the server sees it, and says no limit that a program can read.
TEST(ClientWay, AServerThatTakesShortMessagesGetsThem) {
  ASSERT_OK_AND_ASSIGN(
      const auto server,
      ServerProcess::Start({.flags = {"--limit-message-bytes=16K", "--limit-chunk-bytes=8K"}}));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = server->address()}));
  EXPECT_THAT(SquareOnes(*client), IsOk());
  EXPECT_EQ(SquareOnes(*client).value_or(0), 1) << "remembered";
  // What fits no message of the server is not tried as one twice.
  RunCall call;
  const std::vector<float> ones(std::size_t{64} * 128, 1);
  call.kernel = "square";
  call.inputs = {Ones("x", 64, 128, ones)};
  EXPECT_THAT(client->Run(call), IsOk());
  call.way = Way::kUnary;
  const absl::Status refused = client->Run(call).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("by StreamRun")));
  EXPECT_THAT(refused, ReasonIs("TOO_LARGE"));
}

}  // namespace
}  // namespace gridclock
