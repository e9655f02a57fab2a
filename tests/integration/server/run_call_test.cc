// Run beyond its arguments: retries, deadlines, cancelling, full queues.
#include <algorithm>
#include <ctime>
#include <deque>
#include <filesystem>
#include <iterator>
#include <optional>
#include <regex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "tests/support/credentials.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

std::string Spin(absl::Duration busy, const std::string& request_id = "") {
  v1::RunRequest request;
  request.set_kernel("spin");
  request.set_request_id(request_id);
  (*request.mutable_attributes())["ns"].set_i64(absl::ToInt64Nanoseconds(busy));
  return request.SerializeAsString();
}

// No limit ends it for minutes.
std::string LongSpin() {
  v1::RunRequest request;
  EXPECT_TRUE(request.ParseFromString(Spin(absl::Minutes(5))));
  request.set_kernel_time_limit_seconds(300);
  return request.SerializeAsString();
}

std::string Square(const std::vector<float>& x, const std::string& request_id) {
  v1::RunRequest request = InlineRequest("square", x);
  request.set_request_id(request_id);
  return request.SerializeAsString();
}

// What a worker that waits for an order never takes.
constexpr absl::Duration kSpins = absl::Milliseconds(50);

// Of all its threads.
absl::Duration ProcessorTime(pid_t pid) {
  clockid_t clock = 0;
  timespec time = {};
  EXPECT_EQ(clock_getcpuclockid(pid, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return absl::DurationFromTimespec(time);
}

class RunCall : public ::testing::Test {
 protected:
  // Behind ASSERT_NO_FATAL_FAILURE: a test without a server cannot go on.
  void StartServer(ServerProcess::Options options = ServerProcess::Options()) {
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start(std::move(options)));
    channel_ = Connect(server_->address());
  }
  double Running() const {
    return server_->Metric("gridclock_jobs_running{device=\"cpu\"}").value_or(-1);
  }
  // A call of Spin has begun its launch.
  bool Spins() const {
    if (!Eventually([&] { return Running() == 1; })) return false;
    const pid_t worker = server_->Workers().at(0);
    const absl::Duration before = ProcessorTime(worker);
    return Eventually([&] { return ProcessorTime(worker) > before + kSpins; });
  }
  // Long before a launch that somebody left ends by itself.
  void ExpectIsSoonWell() const {
    const absl::Time start = absl::Now();
    EXPECT_THAT(GoodCall(channel_), IsOk());
    EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  }
  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(RunCall, D19_TheSameIdGetsTheSameAnswer) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const RawResult first = RawCall(channel_, kRunMethod, {Square({1, 2}, "a")});
  const RawResult again = RawCall(channel_, kRunMethod, {Square({1, 2}, "a")});
  EXPECT_THAT(first.status, IsOk());
  EXPECT_EQ(again.messages, first.messages);
}

// The bytes of its inputs take time to read, and nobody reads them.
TEST_F(RunCall, WhatMakesNothingIsNeitherLaunchedNorImpossible) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request;
  request.set_kernel("matmul");
  for (const auto& [name, rows] : {std::pair("a", 0), {"b", 4096}}) {
    v1::Input& input = *request.add_inputs();
    input.set_name(name);
    input.mutable_spec()->set_dtype(v1::F32);
    input.mutable_spec()->add_dims(rows);
    input.mutable_spec()->add_dims(4096);
    input.mutable_generate()->set_kind(v1::Generator::ZEROS);
  }
  request.mutable_measure()->set_max_samples(4);
  v1::RunResponse response;
  const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
  ASSERT_THAT(result.status, IsOk());
  ASSERT_TRUE(response.ParseFromString(result.messages.at(0)));
  const v1::RunSummary& summary = response.summary();
  EXPECT_EQ(summary.device_kernels_size(), 0);
  EXPECT_EQ(std::ranges::count(summary.flags(), v1::IMPOSSIBLE), 0) << summary.DebugString();
}

TEST_F(RunCall, D19_TheSameIdForAnotherRequestIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  EXPECT_THAT(RawCall(channel_, kRunMethod, {Square({1, 2}, "a")}).status, IsOk());
  EXPECT_THAT(RawCall(channel_, kRunMethod, {Square({1, 3}, "a")}).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request_id")));
}

TEST_F(RunCall, D19_AnIdThatRunsIsInProgress) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::StreamRunRequest header;
  *header.mutable_header() = HoldRequest();
  header.mutable_header()->set_request_id("a");
  grpc::ClientContext context;
  RawStream first(channel_, kStreamRunMethod, context);
  ASSERT_TRUE(first.Write(header.SerializeAsString()));
  first.WritesDone();
  std::string accepted;
  ASSERT_TRUE(first.Read(&accepted));
  const RawResult second = RawCall(channel_, kStreamRunMethod, {header.SerializeAsString()});
  EXPECT_EQ(second.status.code(), absl::StatusCode::kAlreadyExists) << second.status;
  EXPECT_THAT(second.status, ReasonIs("IN_PROGRESS"));
  server_->LetGo();
  std::string summary;
  EXPECT_TRUE(first.Read(&summary));
  EXPECT_THAT(first.Finish(), IsOk());
}

TEST_F(RunCall, D19_AnIdWhoseOutputsWereStreamedIsDone) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::StreamRunRequest request;
  ASSERT_TRUE(request.mutable_header()->ParseFromString(Square({1, 2}, "a")));
  EXPECT_THAT(RawCall(channel_, kStreamRunMethod, {request.SerializeAsString()}).status, IsOk());
  const RawResult again = RawCall(channel_, kStreamRunMethod, {request.SerializeAsString()});
  EXPECT_EQ(again.status.code(), absl::StatusCode::kAlreadyExists) << again.status;
  EXPECT_THAT(again.status, ReasonIs("DONE"));
}

// Other bytes too: they come after the id is looked up, and nobody holds them against the first
// ones.
TEST_F(RunCall, D19_ChunksGetNoAnswerThatOthersWithTheSameIdGot) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto stream = [this](const std::vector<float>& x) {
    v1::StreamRunRequest header, chunk;
    EXPECT_TRUE(header.mutable_header()->ParseFromString(Square(x, "a")));
    v1::Input* input = header.mutable_header()->mutable_inputs(0);
    chunk.mutable_chunk()->set_name(input->name());
    chunk.mutable_chunk()->set_data(input->data());
    input->clear_data();
    input->mutable_stream();
    return RawCall(channel_, kStreamRunMethod,
                   {header.SerializeAsString(), chunk.SerializeAsString()});
  };
  EXPECT_THAT(stream({1, 2}).status, IsOk());
  for (const std::vector<float>& x : {std::vector<float>{1, 3}, {1, 2}}) {
    const RawResult again = stream(x);
    EXPECT_EQ(again.status.code(), absl::StatusCode::kAlreadyExists) << again.status;
    EXPECT_THAT(again.status, ReasonIs("DONE"));
    EXPECT_TRUE(again.messages.empty());
  }
}

TEST_F(RunCall, D19_AStreamWithTheIdOfARunThatEndedIsDone) {
  StartServer();
  v1::StreamRunRequest request;
  ASSERT_TRUE(request.mutable_header()->ParseFromString(Square({1, 2}, "a")));
  EXPECT_THAT(RawCall(channel_, kRunMethod, {Square({1, 2}, "a")}).status, IsOk());
  const absl::Status again =
      RawCall(channel_, kStreamRunMethod, {request.SerializeAsString()}).status;
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists) << again;
  EXPECT_THAT(again, ReasonIs("DONE"));
}

TEST_F(RunCall, D19_AnIdMayBeUsedAgainAsSoonAsItsCallFailed) {
  StartServer();
  const auto limited = [](const std::string& id) {
    v1::RunRequest request;
    EXPECT_TRUE(request.ParseFromString(Spin(absl::Seconds(5), id)));
    request.set_kernel_time_limit_seconds(0.001);
    return request.SerializeAsString();
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(RawCall(channel_, kRunMethod, {limited("a")}).status,
                ReasonIs("KERNEL_TIME_LIMIT"));
  }
}

TEST_F(RunCall, ADeadlineEndsARunningKernel) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
  absl::Status ended;  // The client says so, whatever the server does.
  std::thread caller([&] { ended = RawCall(channel_, kRunMethod, {LongSpin()}, context).status; });
  EXPECT_TRUE(Spins());
  caller.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kDeadlineExceeded) << ended;
  ExpectIsSoonWell();
}

TEST_F(RunCall, AKernelThatOverrunsItsLimitIsSaidToHave) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request;
  ASSERT_TRUE(request.ParseFromString(Spin(absl::Minutes(5))));
  request.set_kernel_time_limit_seconds(0.2);
  const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded) << result.status;
  EXPECT_THAT(result.status, ReasonIs("KERNEL_TIME_LIMIT"));
}

TEST_F(RunCall, ALimitOfAMeasuredKernelDoesNotWaitForItsBudget) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request;
  ASSERT_TRUE(request.ParseFromString(Spin(absl::Minutes(5))));
  request.set_kernel_time_limit_seconds(0.2);
  request.mutable_measure()->set_budget_seconds(50);
  const absl::Time start = absl::Now();
  const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
  EXPECT_LT(absl::Now() - start, absl::Seconds(25));
  EXPECT_THAT(result.status, ReasonIs("KERNEL_TIME_LIMIT"));
}

TEST_F(RunCall, D18_CancellingARunningKernelLeavesTheServerWell) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  grpc::ClientContext context;
  absl::Status ended;
  std::thread caller([&] { ended = RawCall(channel_, kRunMethod, {LongSpin()}, context).status; });
  EXPECT_TRUE(Spins());
  context.TryCancel();
  caller.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
  ExpectIsSoonWell();
}

// It runs when no other call is at the worker, and so waits in the server's queue.
std::string MeasuredSquare() {
  v1::RunRequest request = InlineRequest("square", {1, 2});
  request.mutable_measure()->set_max_samples(10);
  return request.SerializeAsString();
}

// Another call has the device for as long as a test wants.
class RunCallInQueue : public RunCall {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartServer());
    holder_ = std::thread([this] {
      held_ = RawCall(channel_, kRunMethod, {HoldRequest().SerializeAsString()}).status;
    });
    EXPECT_TRUE(Eventually([&] { return Running() == 1; }));
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->LetGo();
    holder_.join();
    EXPECT_THAT(held_, IsOk());
    EXPECT_THAT(GoodCall(channel_), IsOk());
    EXPECT_EQ(Squares("ok"), 1) << "what was left in the queue ran";
  }
  double Waiting() const {
    return server_->Metric("gridclock_queue_depth{device=\"cpu\"}").value_or(-1);
  }
  double Squares(const std::string& outcome) const {
    const std::string series = absl::StrCat(
        "gridclock_kernel_runs_total{kernel=\"square\",device=\"cpu\",outcome=\"", outcome, "\"}");
    return server_->Metric(series).value_or(0);
  }
  // The client says how a call ended, whatever the server does.
  bool LeavesTheQueue(const std::string& outcome) const {
    return Eventually([&] { return Waiting() == 0 && Squares(outcome) == 1; }) && Running() == 1;
  }

 private:
  std::thread holder_;
  absl::Status held_;
};

TEST_F(RunCallInQueue, D16_ADeadlineThatPassesThereCostsNoLaunch) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(8));
  absl::Status ended;
  std::thread caller(
      [&] { ended = RawCall(channel_, kRunMethod, {MeasuredSquare()}, context).status; });
  EXPECT_TRUE(Eventually([&] { return Waiting() == 1; }));
  caller.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kDeadlineExceeded) << ended;
  EXPECT_TRUE(LeavesTheQueue("deadline")) << server_->Metrics();
  EXPECT_EQ(server_->Metric("gridclock_queue_expired_total{device=\"cpu\"}"), 1);
}

TEST_F(RunCallInQueue, D18_ACallThatIsCancelledThereLeavesItAtOnce) {
  grpc::ClientContext context;
  absl::Status ended;
  std::thread caller(
      [&] { ended = RawCall(channel_, kRunMethod, {MeasuredSquare()}, context).status; });
  EXPECT_TRUE(Eventually([&] { return Waiting() == 1; }));
  context.TryCancel();
  caller.join();
  EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled) << ended;
  EXPECT_TRUE(LeavesTheQueue("cancelled")) << server_->Metrics();
}

class RunCallOfTwo : public RunCall {
 protected:
  void StartServerForTwo(std::vector<std::string> flags = {}) {
    const std::string tokens = NewFolder() + "/tokens";
    Write(tokens, absl::StrCat("ann read,run ", HashedToken("ann-secret"), "\nbob read,run ",
                               HashedToken("bob-secret")));
    flags.push_back("--token-file=" + tokens);
    StartServer({.flags = std::move(flags)});
  }
  absl::Status CallAs(const char* token, const std::string& request, grpc::ClientContext& context) {
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    return RawCall(channel_, kRunMethod, {request}, context).status;
  }
};

TEST_F(RunCallOfTwo, D19_TheSameIdOfAnotherClientIsAnotherCall) {
  ASSERT_NO_FATAL_FAILURE(StartServerForTwo());
  for (const char* token : {"ann-secret", "bob-secret", "bob-secret"}) {
    grpc::ClientContext context;
    EXPECT_THAT(CallAs(token, Square({1, 2}, "a"), context), IsOk());
  }
  // bob's second is answered by his first.
  EXPECT_EQ(server_->Metric(
                "gridclock_kernel_runs_total{kernel=\"square\",device=\"cpu\",outcome=\"ok\"}"),
            2);
}

// Its budget is ten minutes, and its samples are never enough.
TEST_F(RunCallOfTwo, WhoMeasuresForMinutesMakesRoomForOthers) {
  ASSERT_NO_FATAL_FAILURE(StartServerForTwo({"--limit-turn-seconds=1"}));
  v1::RunRequest request;
  ASSERT_TRUE(request.ParseFromString(Spin(absl::Milliseconds(1))));
  v1::MeasureOptions& measure = *request.mutable_measure();
  measure.set_budget_seconds(600);
  measure.set_warmup_limit_seconds(0.1);  // A busy machine may never be flat.
  measure.set_max_samples(1'000'000);
  measure.set_min_samples(1'000'000);
  grpc::ClientContext long_one, other;
  RawResult measured;
  std::thread ann([&] {
    long_one.AddMetadata("authorization", "Bearer ann-secret");
    measured = RawCall(channel_, kRunMethod, {request.SerializeAsString()}, long_one);
  });
  EXPECT_TRUE(Spins());
  EXPECT_THAT(CallAs("bob-secret", Square({1, 2}, ""), other), IsOk());
  ann.join();
  ASSERT_THAT(measured.status, IsOk());
  v1::RunResponse answer;
  ASSERT_TRUE(answer.ParseFromString(measured.messages.at(0)));
  EXPECT_EQ(answer.summary().timing().stop(), v1::Timing::YIELDED) << answer.ShortDebugString();
  EXPECT_GT(answer.summary().timing().samples_ns_size(), 100);
}

// More often than the breaker would allow of workers that fail.
TEST_F(RunCallOfTwo, WhoLeavesALongLaunchDoesNotKeepTheDeviceFromOthers) {
  ASSERT_NO_FATAL_FAILURE(StartServerForTwo());
  const auto replaced = [&] {
    static const std::regex kReplaced(
        R"re(gridclock_worker_restarts_total\{device="cpu",reason="cancelled"\} (\d+)\n)re");
    const std::string metrics = server_->Metrics();
    std::smatch found;
    int count = -1;
    EXPECT_TRUE(std::regex_search(metrics, found, kReplaced) &&
                absl::SimpleAtoi(found[1].str(), &count));
    return count;
  };
  constexpr int kTimes = 6;
  for (int i = 0; i < kTimes; ++i) {
    grpc::ClientContext long_one, other;
    absl::Status left;
    std::thread ann([&] { left = CallAs("ann-secret", Spin(absl::Seconds(30)), long_one); });
    EXPECT_TRUE(Spins());  // No worker is lost where the cancel is there before the launch.
    long_one.TryCancel();
    ann.join();
    EXPECT_EQ(left.code(), absl::StatusCode::kCancelled);
    const absl::Time start = absl::Now();
    EXPECT_THAT(CallAs("bob-secret", Square({1, 2}, ""), other), IsOk());
    EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  }
  EXPECT_EQ(replaced(), kTimes);
}

TEST_F(RunCall, D17_WithoutADeadlineTheCallIsToldWhatBoundsIt) {
  ASSERT_NO_FATAL_FAILURE(
      StartServer({.flags = {"--limit-queue-seconds=7", "--limit-kernel-seconds=5"}}));
  grpc::ClientContext context;
  EXPECT_THAT(RawCall(channel_, kRunMethod, {Square({1}, "")}, context).status, IsOk());
  const auto& metadata = context.GetServerInitialMetadata();
  const auto queue = metadata.find("gridclock-queue-timeout-seconds");
  const auto kernel = metadata.find("gridclock-kernel-timeout-seconds");
  ASSERT_NE(queue, metadata.end());
  ASSERT_NE(kernel, metadata.end());
  EXPECT_EQ(queue->second, "7");
  EXPECT_EQ(kernel->second, "5");
}

// None has a thread of its own, however long it says nothing.
TEST_F(RunCall, ManyStreamsOfReflectionTakeFewThreads) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto threads = [&] {
    const std::filesystem::directory_iterator tasks(
        absl::StrCat("/proc/", server_->pid(), "/task"));
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  constexpr int kStreams = 100;
  std::deque<grpc::ClientContext> contexts;
  std::deque<RawStream> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.emplace_back(channel_, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                         contexts.emplace_back());
  }
  EXPECT_TRUE(Eventually([&] {
    return server_->Metric(
               "gridclock_rpc_in_flight{method=\"grpc.reflection.v1alpha."
               "ServerReflection/ServerReflectionInfo\"}") == kStreams;
  }));
  EXPECT_LT(threads() - before, 40);
  EXPECT_THAT(RawCall(Connect(server_->address()), kRunMethod, {Square({1, 2}, "")}).status,
              IsOk());
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (RawStream& stream : streams) EXPECT_FALSE(stream.Finish().ok());
}

// What retry policies of gRPC's own clients wait.
std::optional<absl::Duration> Pushback(const grpc::ClientContext& context) {
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto found = trailers.find("grpc-retry-pushback-ms");
  std::int64_t millis = 0;
  if (found == trailers.end()) return std::nullopt;
  EXPECT_TRUE(absl::SimpleAtoi({found->second.data(), found->second.size()}, &millis));
  return absl::Milliseconds(millis);
}

TEST_F(RunCall, AFullQueueSaysWhenToTryAgain) {
  ASSERT_NO_FATAL_FAILURE(StartServer({.flags = {"--limit-queue=1"}}));
  std::atomic<int> ok{0}, full{0}, ended{0};
  std::vector<std::thread> callers;
  constexpr int kCallers = 30;
  callers.reserve(kCallers);
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      grpc::ClientContext context;
      const RawResult result =
          RawCall(channel_, kRunMethod, {HoldRequest().SerializeAsString()}, context);
      if (result.status.ok()) ++ok;
      const ErrorDetails details = DetailsOf(result.status);
      if (details.reason == "QUEUE_FULL" && details.retry_after > absl::ZeroDuration()) ++full;
      EXPECT_EQ(Pushback(context), details.retry_after) << result.status;
      ++ended;
    });
  }
  EXPECT_TRUE(Eventually([&] { return full > 0; }));
  EXPECT_TRUE(Eventually([&] {
    server_->LetGo();
    return ended == kCallers;
  }));
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(ok, 0);
  EXPECT_GT(full, 0);
  EXPECT_EQ(ok + full, kCallers);
  // Counted when the call ends, which its client may see before.
  EXPECT_TRUE(Eventually([&] {
    return server_->Metric(
               "gridclock_rpc_turned_away_total{method=\"gridclock.v1.KernelService/Run\"}") ==
           full;
  }));
}

}  // namespace
}  // namespace gridclock
