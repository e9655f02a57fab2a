#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "client/cpp/client.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/fake_server.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr std::array<float, 2> kX = {1, 2};

CallInput X(std::span<const float> values) {
  return {.name = "x",
          .value = {.is_list = false,
                    .tensors = {{.dtype = DType::kF32,
                                 .shape = {static_cast<std::int64_t>(values.size())}}}},
          .bytes = {std::as_bytes(values)},
          .generator = {}};
}

RunCall Square() {
  RunCall call;
  call.kernel = "square";
  call.inputs = {X(kX)};
  return call;
}

grpc::Status Echo(const v1::RunRequest& request, v1::RunResponse* response) {
  response->mutable_summary()->set_kernel(request.kernel());
  auto* output = response->add_outputs();
  output->set_name("y");
  *output->mutable_spec() = request.inputs(0).spec();
  output->set_data(request.inputs(0).data());
  return grpc::Status::OK;
}

ClientOptions Fast(const FakeServer& server) {
  return {.server = server.address(),
          .token = "secret",
          .tls = {},
          .retry = {.first_backoff = absl::Milliseconds(1)}};
}

// Fails the first `failures` times, then echoes.
auto FailFirst(int failures, absl::Status status) {
  const auto left = std::make_shared<std::atomic<int>>(failures);
  return [left, status](const v1::RunRequest& request, v1::RunResponse* response) {
    return (*left)-- > 0 ? ToGrpc(status) : Echo(request, response);
  };
}

TEST(ClientRunTest, SmallTensorsGoInOneRoundTrip) {
  FakeServer server;
  server.on_run = Echo;
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(Square()));
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(std::memcmp(result.outputs[0].bytes.data(), kX.data(), sizeof(kX)), 0);
  EXPECT_EQ(result.attempts, 1);
  EXPECT_EQ(server.authorization(), "Bearer secret");
}

TEST(ClientRunTest, AFullQueueIsTriedAgainUnderTheSameId) {
  FakeServer server;
  server.on_run = FailFirst(
      2, TryAgain(absl::ResourceExhaustedError("full"), "QUEUE_FULL", absl::Milliseconds(5)));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(Square()));
  EXPECT_EQ(result.attempts, 3);
  const auto runs = server.runs();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_FALSE(runs[0].request_id().empty());
  EXPECT_EQ(runs[0].request_id(), runs[2].request_id());
}

// The first try was lost on the way back, and the server keeps no answer.
TEST(ClientRunTest, AnAnswerThatIsGoneIsComputedAgainUnderANewId) {
  FakeServer server;
  std::atomic<int> calls{0};
  server.on_run = [&](const v1::RunRequest& request, v1::RunResponse* response) {
    switch (calls++) {
      case 0:
        return ToGrpc(absl::UnavailableError("connection lost"));
      case 1:
        return ToGrpc(WithReason(absl::AlreadyExistsError("done"), "DONE"));
      default:
        return Echo(request, response);
    }
  };
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(Square()));
  EXPECT_EQ(result.attempts, 3);
  const auto runs = server.runs();
  EXPECT_EQ(runs[0].request_id(), runs[1].request_id());
  EXPECT_NE(runs[1].request_id(), runs[2].request_id());
}

TEST(ClientRunTest, AFaultOfTheKernelIsFinalAndKeepsItsDetails) {
  FakeServer server;
  server.on_run = FailFirst(
      9,
      WithField(WithReason(absl::FailedPreconditionError("it faulted"), "KERNEL_FAULT"), "kernel"));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  const auto result = client->Run(Square());
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("it faulted")));
  EXPECT_EQ(DetailsOf(result.status()).reason, "KERNEL_FAULT");
  EXPECT_EQ(DetailsOf(result.status()).field, "kernel");
  EXPECT_EQ(server.runs().size(), 1U);
}

TEST(ClientRunTest, ADeadlineEndsTheRetries) {
  FakeServer server;
  server.on_run = FailFirst(
      1000, TryAgain(absl::ResourceExhaustedError("full"), "QUEUE_FULL", absl::Seconds(60)));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  RunCall call = Square();
  call.timeout = absl::Seconds(10);
  EXPECT_THAT(client->Run(call), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  EXPECT_EQ(server.runs().size(), 1U);
}

TEST(ClientRunTest, ADeadlineEndsACallThatHangs) {
  std::promise<void> end;  // Outlives the server, whose thread may come to it late.
  FakeServer server;
  server.on_run = [&](const v1::RunRequest&, v1::RunResponse*) {
    end.get_future().wait();
    return grpc::Status::OK;
  };
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  RunCall call = Square();
  call.timeout = absl::Milliseconds(50);
  EXPECT_EQ(client->Run(call).status().code(), absl::StatusCode::kDeadlineExceeded);
  end.set_value();
}

TEST(ClientRunTest, CancelEndsACallThatHangs) {
  std::promise<void> started, end;  // As above.
  FakeServer server;
  server.on_run = [&](const v1::RunRequest&, v1::RunResponse*) {
    started.set_value();
    end.get_future().wait();
    return grpc::Status::OK;
  };
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  const RunCall call = Square();
  // Shared with the callback, which may still be returning when this test has ended.
  const auto done = std::make_shared<std::promise<absl::Status>>();
  const RunHandle handle =
      client->RunAsync(call, {}, [done](const auto& result) { done->set_value(result.status()); });
  started.get_future().wait();
  handle.Cancel();
  EXPECT_EQ(done->get_future().get().code(), absl::StatusCode::kCancelled);
  end.set_value();
}

TEST(ClientRunTest, CancelEndsAWaitForAnotherTry) {
  FakeServer server;
  server.on_run = FailFirst(
      1000, TryAgain(absl::ResourceExhaustedError("full"), "QUEUE_FULL", absl::Seconds(50)));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  const RunCall call = Square();
  std::promise<void> waits;
  RunEvents events;
  events.retry = [&](const absl::Status&, absl::Duration) { waits.set_value(); };
  const auto done = std::make_shared<std::promise<absl::Status>>();
  const RunHandle handle = client->RunAsync(
      call, events, [done](const auto& result) { done->set_value(result.status()); });
  waits.get_future().wait();
  handle.Cancel();
  auto ended = done->get_future();
  ASSERT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_THAT(ended.get(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("full")));
  EXPECT_EQ(server.runs().size(), 1U);
}

TEST(ClientRunTest, NoServerIsUnavailable) {
  ASSERT_OK_AND_ASSIGN(const auto client,
                       Client::Connect({.server = "127.0.0.1:1",
                                        .retry = {.first_backoff = absl::Milliseconds(1)}}));
  EXPECT_EQ(client->Run(Square()).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientRunTest, WrongBytesAreNotSent) {
  FakeServer server;
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  RunCall call = Square();
  call.inputs[0].bytes[0] = call.inputs[0].bytes[0].first(7);
  EXPECT_EQ(client->Run(call).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(server.runs().empty());
}

TEST(ClientRunTest, BytesThatDoNotFitAreToldOnAThreadOfTheLibrary) {
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect({.server = "127.0.0.1:1"}));
  RunCall call = Square();
  call.inputs[0].bytes[0] = call.inputs[0].bytes[0].first(7);
  // Shared with the callback, which may still be returning when this test has ended.
  struct Told {
    std::thread::id thread;
    std::promise<absl::Status> status;
  };
  const auto told = std::make_shared<Told>();
  client->RunAsync(call, {}, [told](const absl::StatusOr<RunResult>& result) {
    told->thread = std::this_thread::get_id();
    told->status.set_value(result.status());
  });
  EXPECT_EQ(told->status.get_future().get().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(told->thread, std::this_thread::get_id());
}

TEST(ClientRunTest, ManyAtOnceWithoutThreads) {
  FakeServer server;
  server.on_run = Echo;
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  const RunCall call = Square();
  // Shared with the callbacks, the last of which may still be returning when this test has ended.
  struct Count {
    std::atomic<int> ok{0}, left{200};
    std::promise<void> all;
  };
  const auto count = std::make_shared<Count>();
  for (int i = 0; i < 200; ++i) {
    client->RunAsync(call, {}, [count](const absl::StatusOr<RunResult>& result) {
      count->ok += result.ok();
      if (--count->left == 0) count->all.set_value();
    });
  }
  count->all.get_future().wait();
  EXPECT_EQ(count->ok, 200);
}

TEST(ClientRunTest, TooLargeForAMessageGoesByStream) {
  FakeServer server;
  server.on_run =
      FailFirst(9, WithReason(absl::InvalidArgumentError("get them by StreamRun"), "USE_STREAM"));
  server.on_stream = [](ServerStream& stream) {
    v1::StreamRunRequest in;
    while (stream.Read(&in)) continue;
    v1::StreamRunResponse out;
    out.mutable_summary()->set_kernel("square");
    stream.Write(out);
    return grpc::Status::OK;
  };
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(Fast(server)));
  ASSERT_OK_AND_ASSIGN(const RunResult result, client->Run(Square()));
  EXPECT_EQ(result.summary.kernel(), "square");
}

}  // namespace
}  // namespace gridclock
