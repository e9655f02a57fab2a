// One tensor beyond 2 GiB there and back, by the contract alone and by the client library: more
// than any single message, and more than 32 bits.
#include <cstring>

#include <gtest/gtest.h>

#include "client/cpp/client.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kBytes = (std::uint64_t{2} << 30) + 4096 + 4;
constexpr std::uint64_t kChunk = 1 << 20;

// Each 4 bytes say where they are, so that a chunk in the wrong place is seen.
void FillFrom(std::uint64_t offset, std::span<std::byte> bytes) {
  for (std::uint64_t at = 0; at < bytes.size(); at += 4) {
    const auto word = static_cast<std::uint32_t>((offset + at) / 4);
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
}

std::string BytesAt(std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  FillFrom(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

absl::StatusOr<std::unique_ptr<ServerProcess>> StartServer() {
  return ServerProcess::Start(
      {.flags = {"--limit-arena-bytes=5368709120", "--limit-client-arena-bytes=5368709120"}});
}

TEST(HugeTensor, MoreThanTwoGiBComeBackAsTheyWere) {
  ASSERT_OK_AND_ASSIGN(const auto server, StartServer());
  grpc::ClientContext context;
  RawStream stream(Connect(server->address()), kStreamRunMethod, context);
  v1::StreamRunRequest header;
  header.mutable_header()->set_kernel("copy");
  v1::Input* input = header.mutable_header()->add_inputs();
  input->set_name("x");
  input->mutable_spec()->set_dtype(v1::F32);
  input->mutable_spec()->add_dims(kBytes / 4);
  input->mutable_stream();
  ASSERT_TRUE(stream.Write(header.SerializeAsString()));
  for (std::uint64_t at = 0; at < kBytes; at += kChunk) {
    v1::StreamRunRequest chunk;
    chunk.mutable_chunk()->set_name("x");
    chunk.mutable_chunk()->set_offset(at);
    chunk.mutable_chunk()->set_data(BytesAt(at, std::min(kChunk, kBytes - at)));
    ASSERT_TRUE(stream.Write(chunk.SerializeAsString())) << at;
  }
  stream.WritesDone();
  std::uint64_t got = 0;
  v1::StreamRunResponse response;
  for (std::string message; stream.Read(&message);) {
    ASSERT_TRUE(response.ParseFromString(message));
    if (!response.has_chunk()) continue;
    ASSERT_EQ(response.chunk().offset(), got);
    ASSERT_TRUE(response.chunk().data() == BytesAt(got, response.chunk().data().size())) << got;
    got += response.chunk().data().size();
  }
  EXPECT_EQ(got, kBytes);
  EXPECT_THAT(stream.Finish(), IsOk());
}

TEST(HugeTensor, TheClientLibraryBringsMoreThanTwoGiBBack) {
  ASSERT_OK_AND_ASSIGN(const auto server, StartServer());
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = server->address()}));
  ASSERT_OK_AND_ASSIGN(Buffer sent, Buffer::Create(kBytes));
  FillFrom(0, sent.span());
  RunCall call;
  call.kernel = "copy";
  call.inputs.push_back(
      {.name = "x",
       .value = {.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {kBytes / 4}}}},
       .bytes = {sent.span()},
       .generator = {}});
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(call));
  ASSERT_EQ(result.outputs.size(), 1U);
  ASSERT_EQ(result.outputs[0].bytes.size(), kBytes);
  EXPECT_EQ(std::memcmp(result.outputs[0].bytes.data(), sent.span().data(), kBytes), 0);
}

}  // namespace
}  // namespace gridclock
