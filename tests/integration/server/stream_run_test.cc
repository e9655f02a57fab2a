// StreamRun: bytes of several MiB there and back, samples on the way, streams that stop.
#include <atomic>
#include <deque>
#include <numeric>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/status.h"
#include "gridclock/v1/system.pb.h"
#include "tests/support/credentials.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr std::size_t kChunk = 1 << 20;

v1::StreamRunRequest Header(const std::string& kernel, std::int64_t elements) {
  v1::StreamRunRequest request;
  request.mutable_header()->set_kernel(kernel);
  v1::Input* input = request.mutable_header()->add_inputs();
  input->set_name("x");
  input->mutable_spec()->set_dtype(v1::F32);
  input->mutable_spec()->add_dims(elements);
  input->mutable_stream();
  return request;
}

std::vector<std::string> WithChunks(const v1::StreamRunRequest& header, const std::string& bytes) {
  std::vector<std::string> messages = {header.SerializeAsString()};
  for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
    v1::StreamRunRequest request;
    request.mutable_chunk()->set_name("x");
    request.mutable_chunk()->set_offset(at);
    request.mutable_chunk()->set_data(bytes.substr(at, kChunk));
    messages.push_back(request.SerializeAsString());
  }
  return messages;
}

std::string Floats(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
}

std::vector<v1::StreamRunResponse> Parse(const RawResult& result) {
  std::vector<v1::StreamRunResponse> responses;
  for (const std::string& message : result.messages) {
    EXPECT_TRUE(responses.emplace_back().ParseFromString(message));
  }
  return responses;
}

double Usage(const std::shared_ptr<grpc::Channel>& channel, absl::string_view name) {
  const RawResult result = RawCall(channel, "/gridclock.v1.SystemService/GetServerInfo", {""});
  v1::ServerInfo info;
  if (result.messages.empty() || !info.ParseFromString(result.messages[0])) return -1;
  for (const v1::Limit& limit : info.limits()) {
    if (limit.name() == name) return limit.usage();
  }
  return -1;
}

double ArenaUsage(const std::shared_ptr<grpc::Channel>& channel) {
  return Usage(channel, "arena_bytes");
}

// Whether a call of this kernel has run to its end.
bool HasRun(const ServerProcess& server, const std::string& kernel) {
  const std::string runs = absl::StrCat("gridclock_kernel_runs_total{kernel=\"", kernel, "\"");
  return server.Metric(runs).value_or(0) > 0;
}

// A square of 4 numbers, `pause`, and a chunk too many. Nothing if the machine was elsewhere until
// that was written: the server hears only so long whether more comes.
std::optional<absl::Status> SendTooMuch(const std::shared_ptr<grpc::Channel>& channel,
                                        absl::Duration pause) {
  v1::StreamRunRequest more;
  more.mutable_chunk()->set_name("x");
  more.mutable_chunk()->set_offset(16);
  more.mutable_chunk()->set_data(std::string(4, '\0'));
  grpc::ClientContext context;
  const absl::Time begun = absl::Now();
  RawStream stream(channel, kStreamRunMethod, context);
  for (const std::string& message : WithChunks(Header("square", 4), Floats(4))) {
    EXPECT_TRUE(stream.Write(message));
  }
  for (const absl::Time end = absl::Now() + pause; absl::Now() < end;) {  // No sleep is so short.
  }
  const bool written = stream.Write(more.SerializeAsString());
  const bool in_time = absl::Now() - begun <= absl::Milliseconds(500);
  if (written) stream.WritesDone();
  for (std::string message; stream.Read(&message);) {
  }
  const absl::Status status = stream.Finish();
  return in_time ? std::optional(status) : std::nullopt;
}

// Also where it comes in the moment in which the job is done.
TEST(StreamRun, B9_AChunkTooManyIsRefusedWheneverItComes) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  int in_time = 0;
  for (int i = 0; i < 2000; ++i) {
    const absl::Duration pause = absl::Microseconds(i % 200 * 5);
    const auto status = SendTooMuch(channel, pause);
    if (!status) continue;
    ASSERT_THAT(*status, ReasonIs("BAD_CHUNK")) << i << ", " << pause;
    ++in_time;
  }
  EXPECT_GT(in_time, 1000);
}

TEST(StreamRun, BytesComeBackInOrderBetweenAcceptedAndSummary) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  const std::string bytes = Floats(1'400'001);
  const RawResult result =
      RawCall(channel, kStreamRunMethod, WithChunks(Header("copy", 1'400'001), bytes));
  ASSERT_THAT(result.status, IsOk());
  const auto responses = Parse(result);
  ASSERT_EQ(responses.size(), 9u);  // Accepted, output, six chunks, summary.
  EXPECT_EQ(responses.front().accepted().device(), "cpu");
  EXPECT_EQ(responses[1].output().name(), "y");
  EXPECT_EQ(responses[1].output().spec().dims(0), 1'400'001);
  std::string got;
  for (std::size_t i = 2; i + 1 < responses.size(); ++i) {
    EXPECT_EQ(responses[i].chunk().offset(), got.size());
    EXPECT_LE(responses[i].chunk().data().size(), kChunk);
    got += responses[i].chunk().data();
  }
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(responses.back().summary().kernel(), "copy");
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(channel) == 0; }));
}

TEST(StreamRun, AHeaderMayComeInParts) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  v1::StreamRunRequest first, second;
  *first.mutable_header() = InlineRequest("vector_add", {1, 2});
  first.mutable_header()->mutable_inputs(0)->set_name("a");
  *second.mutable_header() = InlineRequest("", {10, 20});
  second.mutable_header()->mutable_inputs(0)->set_name("b");
  const RawResult result =
      RawCall(channel, kStreamRunMethod, {first.SerializeAsString(), second.SerializeAsString()});
  ASSERT_THAT(result.status, IsOk());
  const auto responses = Parse(result);
  ASSERT_EQ(responses.size(), 4u);
  const float want[] = {11, 22};
  EXPECT_EQ(responses[2].chunk().data(), std::string(reinterpret_cast<const char*>(want), 8));
}

TEST(StreamRun, ClientsThatNeverSendTheirInputsKeepNobodyOut) {
  const std::string tokens = NewFolder() + "/tokens";
  std::string lines;
  for (const char* name : {"ann", "bob", "cat"}) {
    absl::StrAppend(&lines, name, " read,run ", HashedToken(absl::StrCat(name, "-secret")), "\n");
  }
  Write(tokens, lines);
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--token-file=" + tokens, "--limit-queue=8",
                                                       "--limit-client-queue=4",
                                                       "--limit-stream-stall-seconds=600"}}));
  const auto channel = Connect(server->address());
  std::deque<grpc::ClientContext> contexts;
  std::deque<RawStream> streams;
  const auto as = [&](const std::string& name) -> grpc::ClientContext& {
    contexts.emplace_back().AddMetadata("authorization", absl::StrCat("Bearer ", name, "-secret"));
    return contexts.back();
  };
  for (const char* name : {"ann", "bob"}) {
    for (int i = 0; i < 4; ++i) {
      RawStream& stream = streams.emplace_back(channel, kStreamRunMethod, as(name));
      for (const std::string& message : WithChunks(Header("square", 2), Floats(1))) {
        ASSERT_TRUE(stream.Write(message));
      }
      std::string accepted;
      ASSERT_TRUE(stream.Read(&accepted));
    }
  }
  const std::string run = InlineRequest("square", {1, 2}).SerializeAsString();
  for (const char* name : {"cat", "cat", "ann"}) {
    EXPECT_THAT(RawCall(channel, kRunMethod, {run}, as(name)).status, IsOk());
  }
  const auto upload = WithChunks(Header("square", 2), Floats(2));
  EXPECT_THAT(RawCall(channel, kStreamRunMethod, upload, as("cat")).status, IsOk());
  const absl::Status refused = RawCall(channel, kStreamRunMethod, upload, as("ann")).status;
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                ::testing::HasSubstr("8 calls of all clients wait for memory")));
  EXPECT_THAT(refused, ReasonIs("QUEUE_FULL"));
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (RawStream& stream : streams) EXPECT_FALSE(stream.Finish().ok());
}

TEST(StreamRun, SamplesComeWhileItMeasures) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  constexpr int kSamples = 100;
  v1::StreamRunRequest request;
  *request.mutable_header() = HoldRequest();
  request.mutable_header()->mutable_measure()->mutable_schedule()->set_active(kSamples);
  grpc::ClientContext context;
  RawStream stream(Connect(server->address()), kStreamRunMethod, context);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  stream.WritesDone();

  // Each launch is held until it is let go.
  std::atomic<bool> lets_go{true}, ended{false};
  std::thread other([&] {
    EXPECT_TRUE(Eventually([&] {
      if (lets_go) server->LetGo();
      return ended.load();
    }));
  });
  int samples = 0;
  v1::StreamRunResponse response;
  for (std::string message; stream.Read(&message);) {
    EXPECT_TRUE(response.ParseFromString(message));
    if (response.samples().samples_ns_size() == 0 || response.samples().warmup()) continue;
    if (samples == 0) {
      lets_go = false;
      EXPECT_LT(response.samples().samples_ns_size(), kSamples);
      EXPECT_FALSE(HasRun(*server, "hold"));
      lets_go = true;
    }
    samples += response.samples().samples_ns_size();
  }
  ended = true;
  other.join();
  EXPECT_THAT(stream.Finish(), IsOk());
  EXPECT_EQ(samples, kSamples);
  EXPECT_EQ(response.summary().timing().samples_ns_size(), kSamples);
  EXPECT_TRUE(Eventually([&] { return HasRun(*server, "hold"); }));
}

TEST(StreamRun, B9_AClientThatStopsSendingIsLetGo) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=10"}}));
  const auto channel = Connect(server->address());
  grpc::ClientContext context;
  const auto messages = WithChunks(Header("copy", 1 << 20), Floats(1 << 18));
  RawStream stream(channel, kStreamRunMethod, context);
  ASSERT_TRUE(stream.Write(messages[0]));
  ASSERT_TRUE(stream.Write(messages[1]));
  std::string ignored;
  while (stream.Read(&ignored)) {
  }
  const absl::Status status = stream.Finish();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(status, ReasonIs("STREAM_STALLED"));
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(channel) == 0; }));
}

// Its status stands behind what it does not take: only the log can say why it ended.
TEST(StreamRun, AClientThatStopsReadingIsCutOffAndNamedInTheLog) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=1"}}));
  grpc::ClientContext context;
  RawStream stream(ConnectNarrowly(server->address()), kStreamRunMethod, context);
  v1::StreamRunRequest request = Header("copy", 8 << 20);
  request.mutable_header()->mutable_inputs(0)->mutable_generate()->set_kind(v1::Generator::ONES);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  stream.WritesDone();
  EXPECT_TRUE(server->WillLog("stream_stalled client=\"local\" peer=\"ipv4:127.0.0.1:"));
  for (std::string ignored; stream.Read(&ignored);) continue;
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kCancelled);
}

// Sends a message every 100 ms until the server holds nothing of this limit any more. How many.
int Drip(RawStream& stream, const std::shared_ptr<grpc::Channel>& other, absl::string_view limit,
         const std::function<std::string(int)>& message) {
  constexpr int kPatience = 100;
  for (int i = 0; i < kPatience; ++i) {
    if (!stream.Write(message(i))) return i;
    absl::SleepFor(absl::Milliseconds(100));
    if (Usage(other, limit) == 0) return i;
  }
  return kPatience;
}

// It never stalls, but four bytes now and then would take a year.
TEST(StreamRun, AClientThatDripsIsLetGo) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=1"}}));
  grpc::ClientContext context;
  RawStream stream(Connect(server->address()), kStreamRunMethod, context);
  ASSERT_TRUE(stream.Write(Header("copy", 1 << 20).SerializeAsString()));
  const int sent = Drip(stream, Connect(server->address()), "arena_bytes", [](int i) {
    v1::StreamRunRequest drip;
    drip.mutable_chunk()->set_name("x");
    drip.mutable_chunk()->set_offset(std::uint64_t{4} * i);
    drip.mutable_chunk()->set_data("drip");
    return drip.SerializeAsString();
  });
  EXPECT_LT(sent, 100);
  std::string ignored;
  while (stream.Read(&ignored)) {
  }
  EXPECT_THAT(stream.Finish(), ReasonIs("STREAM_STALLED"));
}

// Of parts that bring nothing to the header a client could send one after another for ever.
TEST(StreamRun, AHeaderOfDripsIsLetGo) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=1"}}));
  grpc::ClientContext context;
  RawStream stream(Connect(server->address()), kStreamRunMethod, context);
  const std::string unknown_field("\x0a\x02\x60\x00", 4);  // header { 12: 0 }
  const int sent = Drip(stream, Connect(server->address()), "stream_memory_bytes",
                        [&](int) { return unknown_field; });
  EXPECT_LT(sent, 100);
  EXPECT_THAT(stream.Finish(), ReasonIs("STREAM_STALLED"));
}

TEST(StreamRun, HeadersOfManyStreamsHaveABudget) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-memory-bytes=10000"}}));
  const auto channel = Connect(server->address());
  v1::StreamRunRequest request;
  *request.mutable_header() = InlineRequest("square", std::vector<float>(2000, 1));
  const auto refused = RawCall(channel, kStreamRunMethod, {request.SerializeAsString()});
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kResourceExhausted) << refused.status;
  EXPECT_THAT(refused.status, ReasonIs("MEMORY_FULL"));
  *request.mutable_header() = InlineRequest("square", {1, 2});
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(RawCall(channel, kStreamRunMethod, {request.SerializeAsString()}).status, IsOk());
  }
  EXPECT_TRUE(Eventually([&] { return Usage(channel, "stream_memory_bytes") == 0; }));
}

// A million samples are 8 MB, of which the client takes nothing.
TEST(StreamRun, SamplesThatNobodyReadsHaveABudget) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-memory-bytes=14000000"}}));
  grpc::ClientContext context;
  RawStream stream(ConnectNarrowly(server->address()), kStreamRunMethod, context);
  v1::StreamRunRequest request;
  request.mutable_header()->set_kernel("empty");
  request.mutable_header()->mutable_measure()->mutable_schedule()->set_active(1'000'000);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  stream.WritesDone();
  const auto other = Connect(server->address());
  ASSERT_TRUE(Eventually(
      [&] { return Usage(other, "stream_memory_bytes") > 100'000 || HasRun(*server, "empty"); }));
  // The client has taken nothing: what is gone was dropped.
  ASSERT_TRUE(
      Eventually([&] { return Usage(other, "stream_memory_bytes") < 10'000; }, absl::Seconds(100)));
  std::string ignored;
  while (stream.Read(&ignored)) {
  }
  EXPECT_THAT(stream.Finish(), ReasonIs("MEMORY_FULL"));
  EXPECT_TRUE(Eventually([&] { return Usage(other, "stream_memory_bytes") == 0; }));
}

// The job may be over before the surplus is here; the call is not.
TEST(StreamRun, SurplusIsAnErrorAlsoWhenTheJobIsOver) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  std::optional<absl::Status> status;
  EXPECT_TRUE(Eventually([&] {
    status = SendTooMuch(channel, absl::Milliseconds(100));
    return status.has_value();
  }));
  EXPECT_THAT(status.value_or(absl::OkStatus()), ReasonIs("BAD_CHUNK"));
}

// A client need not end its side if it has sent what it should.
TEST(StreamRun, AClientThatNeverEndsItsSideIsAnsweredAllTheSame) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  grpc::ClientContext context;
  RawStream stream(Connect(server->address()), kStreamRunMethod, context);
  for (const std::string& message : WithChunks(Header("square", 4), Floats(4))) {
    ASSERT_TRUE(stream.Write(message));
  }
  std::string ignored;
  while (stream.Read(&ignored)) {
  }
  EXPECT_THAT(stream.Finish(), IsOk());
}

// The answer lies in the arena until it is read.
TEST(StreamRun, AnAnswerToRunThatNobodyReadsIsDropped) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=10"}}));
  const auto other = Connect(server->address());
  const std::string run = InlineRequest("copy", std::vector<float>(1 << 18, 1)).SerializeAsString();
  grpc::ClientContext context;
  RawStream stream(ConnectNarrowly(server->address()), kRunMethod, context);
  ASSERT_TRUE(stream.Write(run));
  stream.WritesDone();
  ASSERT_TRUE(Eventually([&] { return HasRun(*server, "copy"); }));
  EXPECT_GT(ArenaUsage(other), 0) << "the answer was not held back";
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(other) == 0; }));
  context.TryCancel();  // gRPC's client waits until what came has been read.
  EXPECT_FALSE(stream.Finish().ok());
}

TEST(StreamRun, AClientThatNeverReadsIsLetGo) {
  ASSERT_OK_AND_ASSIGN(const auto server,
                       ServerProcess::Start({.flags = {"--limit-stream-stall-seconds=10"}}));
  const auto channel = Connect(server->address());
  const auto other = Connect(server->address());
  grpc::ClientContext context;
  const auto messages = WithChunks(Header("copy", 8 << 20), Floats(8 << 20));
  RawStream stream(channel, kStreamRunMethod, context);
  for (const auto& message : messages) ASSERT_TRUE(stream.Write(message));
  EXPECT_TRUE(Eventually([&] { return HasRun(*server, "copy"); }));
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(other) == 0; }));
  context.TryCancel();  // gRPC's client waits until what came has been read.
  EXPECT_FALSE(stream.Finish().ok());
}

// The header is not done until half of the call's time is over: the other half is still the call's.
// How it ended.
absl::Status RunWithASlowHeader(const std::string& address) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(12));
  RawStream stream(Connect(address), kStreamRunMethod, context);
  v1::StreamRunRequest request;
  *request.mutable_header() = InlineRequest("square", {1, 2, 3});
  EXPECT_TRUE(stream.Write(request.SerializeAsString()));
  absl::SleepFor(absl::Milliseconds(6100));
  stream.WritesDone();
  std::string ignored;
  while (stream.Read(&ignored)) {
  }
  return stream.Finish();
}

TEST(StreamRun, TheDeadlineIsTheCallsHoweverLongItsHeaderTakes) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  for (int tries = 3;; --tries) {
    const absl::Time begun = absl::Now();
    const absl::Status status = RunWithASlowHeader(server->address());
    // A busy machine may have kept the call from the rest of its time.
    if (tries > 1 && absl::Now() - begun > absl::Seconds(11)) continue;
    EXPECT_THAT(status, IsOk());
    return;
  }
}

TEST(StreamRun, D18_ACancelledUploadFreesItsMemory) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  const auto channel = Connect(server->address());
  grpc::ClientContext context;
  RawStream stream(channel, kStreamRunMethod, context);
  const auto messages = WithChunks(Header("copy", 1 << 20), Floats(1 << 18));
  ASSERT_TRUE(stream.Write(messages[0]));
  ASSERT_TRUE(stream.Write(messages[1]));
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(channel) > 0; }));
  context.TryCancel();
  EXPECT_EQ(stream.Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(Eventually([&] { return ArenaUsage(channel) == 0; }));
  EXPECT_THAT(GoodCall(channel), IsOk());
}

}  // namespace
}  // namespace gridclock
