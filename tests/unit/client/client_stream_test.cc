#include <cstring>
#include <vector>

#include "client/cpp/client.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/fake_server.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBytes = (40 << 20) + 17;  // Much more than all windows together.

std::vector<std::byte> Pattern() {
  std::vector<std::byte> out(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) out[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  return out;
}

RunCall Copy(const std::vector<std::byte>& bytes) {
  RunCall call;
  call.kernel = "copy";
  call.inputs = {{.name = "x",
                  .value = {.is_list = false,
                            .tensors = {{.dtype = DType::kU8,
                                         .shape = {static_cast<std::int64_t>(bytes.size())}}}},
                  .bytes = {bytes},
                  .generator = {}}};
  return call;
}

v1::StreamRunResponse Announce(const v1::TensorSpec& spec) {
  v1::StreamRunResponse out;
  out.mutable_output()->set_name("y");
  *out.mutable_output()->mutable_spec() = spec;
  return out;
}

v1::StreamRunResponse Summary() {
  v1::StreamRunResponse out;
  out.mutable_summary()->set_kernel("copy");
  return out;
}

// Sends every chunk back at once: whoever waits for the end of the upload before reading hangs.
grpc::Status EchoStream(ServerStream& stream) {
  v1::StreamRunRequest in;
  while (stream.Read(&in)) {
    if (in.has_header()) {
      v1::StreamRunResponse accepted;
      accepted.mutable_accepted()->set_device("cpu");
      stream.Write(accepted);
      stream.Write(Announce(in.header().inputs(0).spec()));
      continue;
    }
    v1::StreamRunResponse out;
    *out.mutable_chunk() = in.chunk();
    out.mutable_chunk()->set_name("y");
    stream.Write(out);
  }
  stream.Write(Summary());
  return grpc::Status::OK;
}

absl::StatusOr<RunResult> RunAgainst(std::function<grpc::Status(ServerStream&)> on_stream,
                                     const RunCall& call, const RunEvents& events = {}) {
  FakeServer server;
  server.on_stream = std::move(on_stream);
  GC_ASSIGN_OR_RETURN(const auto client, Client::Connect({.server = server.address()}));
  return client->Run(call, events);
}

TEST(ClientStreamTest, BytesGoUpAndDownAtTheSameTime) {
  const auto bytes = Pattern();
  std::uint64_t sent = 0, received = 0;
  std::string device;
  RunEvents events;
  events.moved = [&](std::uint64_t up, std::uint64_t down) {
    sent = up;
    received = down;
  };
  events.accepted = [&](const v1::Accepted& accepted) { device = accepted.device(); };
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunAgainst(EchoStream, Copy(bytes), events));
  ASSERT_EQ(result.outputs.size(), 1U);
  ASSERT_EQ(result.outputs[0].bytes.size(), kBytes);
  EXPECT_EQ(std::memcmp(result.outputs[0].bytes.data(), bytes.data(), kBytes), 0);
  EXPECT_EQ(sent, kBytes);
  EXPECT_EQ(received, kBytes);
  EXPECT_EQ(device, "cpu");
}

TEST(ClientStreamTest, AnOutputGoesWhereTheCallerSays) {
  const auto bytes = Pattern();
  std::vector<std::byte> place(kBytes);
  RunEvents events;
  events.place = [&](const std::string&, const OperandValue&) { return std::span(place); };
  ASSERT_OK_AND_ASSIGN(const RunResult result, RunAgainst(EchoStream, Copy(bytes), events));
  EXPECT_EQ(result.outputs[0].bytes.data(), place.data());
  EXPECT_EQ(result.outputs[0].owned.size(), 0U);
  EXPECT_EQ(place, bytes);
}

TEST(ClientStreamTest, AFailureAfterTheLaunchKeepsWhatWasMeasured) {
  const auto result = RunAgainst(
      [](ServerStream& stream) {
        v1::StreamRunRequest in;
        stream.Read(&in);
        v1::StreamRunResponse out = Summary();
        out.mutable_summary()->mutable_timing()->add_samples_ns(5);
        stream.Write(out);
        return ToGrpc(WithReason(absl::DeadlineExceededError("too long"), "KERNEL_TIME_LIMIT"));
      },
      Copy(Pattern()));
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("too long")));
  ASSERT_TRUE(PartialSummary(result.status()).has_value());
  EXPECT_EQ(PartialSummary(result.status())->timing().samples_ns(0), 5);
}

TEST(ClientStreamTest, ARefusalEndsTheUpload) {
  const auto result = RunAgainst(
      [](ServerStream& stream) {
        v1::StreamRunRequest in;
        stream.Read(&in);
        return ToGrpc(absl::NotFoundError("no kernel 'copy'"));
      },
      Copy(Pattern()));
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kNotFound, HasSubstr("no kernel")));
}

// The rest are servers that break the protocol: no write past a buffer, no wait without end.
absl::StatusOr<RunResult> Answer(const std::vector<v1::StreamRunResponse>& messages) {
  RunCall call;
  call.kernel = "copy";
  call.way = Way::kStream;
  return RunAgainst(
      [&](ServerStream& stream) {
        v1::StreamRunRequest in;
        while (stream.Read(&in)) continue;
        for (const auto& message : messages) stream.Write(message);
        return grpc::Status::OK;
      },
      call);
}

v1::TensorSpec FourBytes() {
  v1::TensorSpec spec;
  spec.set_dtype(v1::U8);
  spec.add_dims(4);
  return spec;
}

v1::StreamRunResponse Chunk(const char* name, std::uint64_t offset, const char* data) {
  v1::StreamRunResponse out;
  out.mutable_chunk()->set_name(name);
  out.mutable_chunk()->set_offset(offset);
  out.mutable_chunk()->set_data(data);
  return out;
}

TEST(ClientStreamTest, ChunksMustFitTheirOutput) {
  const auto announced = Announce(FourBytes());
  EXPECT_TRUE(Answer({announced, Chunk("y", 0, "ab"), Chunk("y", 2, "cd"), Summary()}).ok());
  for (const auto& chunk : {Chunk("y", 0, "abcde"), Chunk("y", 1, "a"), Chunk("z", 0, "abcd"),
                            Chunk("y", ~0ULL, "abcd")}) {
    EXPECT_THAT(Answer({announced, chunk, Summary()}),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("broke the protocol")));
  }
}

TEST(ClientStreamTest, AnOutputMustBeWhole) {
  EXPECT_THAT(Answer({Announce(FourBytes()), Chunk("y", 0, "abc"), Summary()}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("3 of 4 bytes")));
}

TEST(ClientStreamTest, ASummaryMustCome) {
  EXPECT_THAT(Answer({}), StatusIs(absl::StatusCode::kInternal, HasSubstr("summary")));
}

TEST(ClientStreamTest, AnOutputTooLargeForThisMachineIsRefused) {
  v1::TensorSpec spec;
  spec.set_dtype(v1::U8);
  spec.add_dims(std::int64_t{1} << 60);
  EXPECT_FALSE(Answer({Announce(spec), Summary()}).ok());
}

}  // namespace
}  // namespace gridclock
