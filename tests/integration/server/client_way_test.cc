// Which way the client library sends a call: the server knows best what fits a message.
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

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

}  // namespace
}  // namespace gridclock
