// What an answer says of its call beside the outputs: phases, launches, timing, flags, memory; and
// what `accepted` says before it.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

struct Answer {
  v1::RunSummary summary;
  absl::Time sent, received;
  absl::Duration took;  // By the clock that the server's phases are of.
};

// The same call by Run and by StreamRun: what they say of it must not differ.
class Summary : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start();
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_ = nullptr; }
  void SetUp() override {
    ASSERT_NE(server_, nullptr);
    channel_ = Connect(server_->address());
  }

  Answer Call(const v1::RunRequest& request) {
    Answer answer;
    const MonotonicClock clock;
    const absl::Time begun = clock.Now();
    answer.sent = absl::Now();
    const RawResult result = RawCall(channel_, GetParam(), {Sent(request)});
    answer.received = absl::Now();
    answer.took = clock.Now() - begun;
    EXPECT_THAT(result.status, IsOk());
    if (!result.messages.empty()) answer.summary = SummaryIn(result.messages.back());
    return answer;
  }

 private:
  bool streamed() const { return GetParam() == absl::string_view(kStreamRunMethod); }

  std::string Sent(const v1::RunRequest& request) const {
    if (!streamed()) return request.SerializeAsString();
    v1::StreamRunRequest header;
    *header.mutable_header() = request;
    return header.SerializeAsString();
  }

  v1::RunSummary SummaryIn(const std::string& message) const {
    if (streamed()) {
      v1::StreamRunResponse response;
      EXPECT_TRUE(response.ParseFromString(message));
      return response.summary();
    }
    v1::RunResponse response;
    EXPECT_TRUE(response.ParseFromString(message));
    return response.summary();
  }

  static inline std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

INSTANTIATE_TEST_SUITE_P(Both, Summary, ::testing::Values(kRunMethod, kStreamRunMethod));

v1::RunRequest SquareOf16() {
  return InlineRequest("square", std::vector<float>(16, 3));
}

std::vector<v1::Phase::Kind> Kinds(const v1::RunSummary& summary) {
  std::vector<v1::Phase::Kind> kinds;
  for (const v1::Phase& phase : summary.phases()) kinds.push_back(phase.kind());
  return kinds;
}

// In the order of their kinds, none before the request came or after its answer was here.
void ExpectInOrder(const Answer& answer) {
  int kind = 0;
  for (const v1::Phase& phase : answer.summary.phases()) {
    EXPECT_GT(phase.kind(), kind);
    kind = phase.kind();
    EXPECT_GE(phase.start_ns(), 0) << phase.DebugString();
    EXPECT_LE(phase.start_ns(), phase.end_ns()) << phase.DebugString();
    EXPECT_LE(absl::Nanoseconds(phase.end_ns()), answer.took) << phase.DebugString();
  }
}

v1::Phase PhaseOf(const v1::RunSummary& summary, v1::Phase::Kind kind) {
  for (const v1::Phase& phase : summary.phases()) {
    if (phase.kind() == kind) return phase;
  }
  ADD_FAILURE() << "no " << v1::Phase::Kind_Name(kind) << " in " << summary.DebugString();
  return {};
}

TEST_P(Summary, PhasesOfALaunchAreInOrder) {
  const Answer answer = Call(SquareOf16());
  EXPECT_THAT(Kinds(answer.summary), ElementsAre(v1::Phase::RECEIVED, v1::Phase::QUEUED,
                                                 v1::Phase::LAUNCHED, v1::Phase::FINISHED));
  ExpectInOrder(answer);
  EXPECT_EQ(PhaseOf(answer.summary, v1::Phase::RECEIVED).start_ns(), 0);
  EXPECT_GE(PhaseOf(answer.summary, v1::Phase::LAUNCHED).start_ns(),
            PhaseOf(answer.summary, v1::Phase::QUEUED).end_ns());
}

TEST_P(Summary, ThePhaseOfAKernelIsAsLongAsItRuns) {
  v1::RunRequest request;
  request.set_kernel("spin");
  (*request.mutable_attributes())["ns"].set_i64(30'000'000);
  const v1::RunSummary summary = Call(request).summary;
  const v1::Phase finished = PhaseOf(summary, v1::Phase::FINISHED);
  EXPECT_GE(finished.end_ns() - finished.start_ns(), 30'000'000);
}

TEST_P(Summary, WhatWasComparedHasAPhase) {
  v1::RunRequest request = SquareOf16();
  request.set_verify(true);
  const Answer answer = Call(request);
  ExpectInOrder(answer);
  EXPECT_GT(PhaseOf(answer.summary, v1::Phase::VERIFIED).end_ns(),
            PhaseOf(answer.summary, v1::Phase::VERIFIED).start_ns());
  EXPECT_EQ(answer.summary.verification().checked(), 16u);
}

TEST_P(Summary, ALaunchIsCountedAndItsMemoryAndWorkAreTold) {
  const Answer answer = Call(SquareOf16());
  const v1::RunSummary& summary = answer.summary;
  ASSERT_EQ(summary.device_kernels_size(), 1);
  EXPECT_EQ(summary.device_kernels(0).name(), "square/simd");
  EXPECT_EQ(summary.device_kernels(0).count(), 1);
  EXPECT_EQ(summary.peak_device_bytes(), 128u);
  EXPECT_EQ(summary.bytes(), 128);
  // Each process has the date by a clock of its own, which somebody may set meanwhile.
  constexpr absl::Duration kApart = absl::Seconds(1);
  EXPECT_GE(absl::FromUnixNanos(summary.unix_time_ns()), answer.sent - kApart);
  EXPECT_LE(absl::FromUnixNanos(summary.unix_time_ns()), answer.received + kApart);
}

TEST_P(Summary, AMeasurementCountsItsWarmUpAndItsSamples) {
  v1::RunRequest request = SquareOf16();
  request.mutable_measure()->mutable_schedule()->set_warmup(3);
  request.mutable_measure()->mutable_schedule()->set_active(7);
  const v1::RunSummary summary = Call(request).summary;
  ASSERT_EQ(summary.device_kernels_size(), 1);
  EXPECT_EQ(summary.timing().warmups(), 3);
  EXPECT_EQ(summary.timing().samples_ns_size(), 7);
  EXPECT_EQ(summary.device_kernels(0).count(), 10);
  const v1::Phase finished = PhaseOf(summary, v1::Phase::FINISHED);
  EXPECT_GE(finished.end_ns() - finished.start_ns(), 7 * summary.timing().statistics().min_ns());
}

TEST_P(Summary, AMeasurementHasItsFlags) {
  v1::RunRequest request = SquareOf16();
  request.mutable_measure()->set_method(v1::HOST_SYNC);
  const v1::RunSummary summary = Call(request).summary;
  EXPECT_THAT(summary.flags(), Contains(v1::TEACHING_METHOD));
  EXPECT_EQ(summary.device_kernels(0).count(), summary.timing().samples_ns_size());
}

class Accepted : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start());
    channel_ = Connect(server_->address());
  }

  // What a stream of `spin` for so long hears first; it goes on until the test ends.
  v1::Accepted Begin(absl::Duration busy) {
    v1::StreamRunRequest request;
    request.mutable_header()->set_kernel("spin");
    (*request.mutable_header()->mutable_attributes())["ns"].set_i64(absl::ToInt64Nanoseconds(busy));
    RawStream& stream = streams_.emplace_back(channel_, kStreamRunMethod, contexts_.emplace_back());
    EXPECT_TRUE(stream.Write(request.SerializeAsString()));
    stream.WritesDone();
    std::string message;
    EXPECT_TRUE(stream.Read(&message));
    v1::StreamRunResponse response;
    EXPECT_TRUE(response.ParseFromString(message));
    return response.accepted();
  }

  void TearDown() override {
    for (grpc::ClientContext& context : contexts_) context.TryCancel();
    for (RawStream& stream : streams_) stream.Finish().IgnoreError();
  }

  std::shared_ptr<grpc::Channel> channel_;

 private:
  std::unique_ptr<ServerProcess> server_;
  std::deque<grpc::ClientContext> contexts_;
  std::deque<RawStream> streams_;
};

TEST_F(Accepted, TellsThePlaceInTheQueueAndHowLongItTakes) {
  v1::RunRequest spin;
  spin.set_kernel("spin");
  (*spin.mutable_attributes())["ns"].set_i64(50'000'000);
  EXPECT_THAT(RawCall(channel_, kRunMethod, {spin.SerializeAsString()}).status, IsOk());

  const v1::Accepted first = Begin(absl::Minutes(5));
  EXPECT_EQ(first.queue_position(), 0u);
  EXPECT_EQ(first.expected_wait_seconds(), 0);
  EXPECT_EQ(first.device(), "cpu");
  EXPECT_EQ(first.variant(), "naive");
  const v1::Accepted second = Begin(absl::Minutes(5)), third = Begin(absl::Minutes(5));
  EXPECT_EQ(second.queue_position(), 1u);
  EXPECT_EQ(third.queue_position(), 2u);
  EXPECT_GT(second.expected_wait_seconds(), 0);
  EXPECT_NEAR(third.expected_wait_seconds(), 2 * second.expected_wait_seconds(), 1e-9);
}

}  // namespace
}  // namespace gridclock
