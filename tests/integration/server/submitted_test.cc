// Programs of submitted code through a real server: run and measured in a process of their
// principal alone, and what they may do wrong. Native functions of the test worker stand in for
// device code.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/server/submitted_fixture.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Of an input x that is streamed: what a message has from `from` on.
constexpr std::size_t kChunk = 1 << 20;
std::string ChunkOf(const std::string& bytes, std::size_t from) {
  v1::StreamRunRequest chunk;
  chunk.mutable_chunk()->set_name("x");
  chunk.mutable_chunk()->set_offset(from);
  chunk.mutable_chunk()->set_data(bytes.substr(from, kChunk));
  return chunk.SerializeAsString();
}

// The first message of a StreamRun of `request`, whose only input comes in chunks of `n` f32.
v1::StreamRunRequest Streamed(v1::RunRequest request, std::size_t n) {
  v1::Input& input = *request.mutable_inputs(0);
  input.mutable_spec()->set_dims(0, static_cast<std::int64_t>(n));
  input.clear_data();
  input.mutable_stream();
  v1::StreamRunRequest header;
  *header.mutable_header() = std::move(request);
  return header;
}

std::string BytesOf(const std::vector<float>& x) {
  return {reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)};
}

// Up to its first chunk; it has its memory then.
void BeginUpload(RawStream& stream, const v1::StreamRunRequest& header, const std::string& bytes) {
  ASSERT_TRUE(stream.Write(header.SerializeAsString()));
  ASSERT_TRUE(stream.Write(ChunkOf(bytes, 0)));
  std::string message;
  ASSERT_TRUE(stream.Read(&message));  // Accepted.
}

// What is left of the stream's outputs.
std::string OutputsOf(RawStream& stream) {
  std::string bytes, message;
  while (stream.Read(&message)) {
    v1::StreamRunResponse response;
    EXPECT_TRUE(response.ParseFromString(message));
    bytes += response.chunk().data();
  }
  return bytes;
}

TEST_F(Submitted, AProgramRunsAsAKernelOfItsWords) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer answer = Run(kAnn, Square(kAnn));
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_THAT(answer.Output(), ElementsAre(1, 4, 9));
  EXPECT_EQ(answer.response.summary().kernel(), "mine");
  EXPECT_EQ(answer.response.summary().device(), "cpu");
  EXPECT_EQ(answer.response.outputs(0).name(), "y");
  EXPECT_THAT(server_->Metrics(),
              HasSubstr("gridclock_kernel_runs_total{kernel=\"user\",device=\"cpu\","));
  EXPECT_THAT(server_->Metrics(), Not(HasSubstr("\"mine\"")));
}

TEST_F(Submitted, AProgramIsMeasuredLikeAnyKernel) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Square(kAnn, std::vector<float>(1000, 2));
  request.mutable_measure()->set_max_samples(50);
  request.mutable_measure()->set_budget_seconds(10);
  const Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Timing& timing = answer.response.summary().timing();
  EXPECT_GT(timing.samples_ns_size(), 4);
  EXPECT_GT(timing.statistics().median_ns(), 0);
  EXPECT_EQ(answer.Output(), std::vector<float>(1000, 4));
}

TEST_F(Submitted, AStreamOfMiBsGoesThereAndBackWithSamples) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  std::vector<float> x(1'400'001), want(x.size());
  std::iota(x.begin(), x.end(), 0.F);
  for (std::size_t i = 0; i < x.size(); ++i) want[i] = x[i] * x[i];
  v1::StreamRunRequest header = Streamed(Square(kAnn, {1}), x.size());
  header.mutable_header()->mutable_measure()->set_max_samples(10);
  header.mutable_header()->mutable_measure()->set_budget_seconds(0.1);
  std::vector<std::string> messages = {header.SerializeAsString()};
  const std::string bytes = BytesOf(x);
  for (std::size_t at = 0; at < bytes.size(); at += kChunk) messages.push_back(ChunkOf(bytes, at));
  const RawResult result = Call(kAnn, kStreamRunMethod, messages);
  ASSERT_THAT(result.status, IsOk());
  std::string got;
  int samples = 0;
  for (const std::string& message : result.messages) {
    v1::StreamRunResponse response;
    ASSERT_TRUE(response.ParseFromString(message));
    got += response.chunk().data();
    samples += response.samples().samples_ns_size();
  }
  EXPECT_EQ(ValuesOf<float>(got), want);
  EXPECT_GT(samples, 0);
}

TEST_F(Submitted, LaunchesFollowOneAnotherWithScratchBetweenThem) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = InlineRequest("", {1, 2, 3});
  request.mutable_program()->set_words(
      "twice x: f32[N] -> y: f32[N] scratch t: f32[N] grid (1) block (32)");
  AddLaunch(Native(kAnn, "square"), "square", "params x, t, n: int = N", request);
  AddLaunch(Native(kAnn, "add"), "add", "params t, t, y, n: int = N", request);
  const Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_THAT(answer.Output(), ElementsAre(2, 8, 18));
}

TEST_F(Submitted, ScratchHoldsNothingOfAnEarlierCall) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer marked = Run(kAnn, Request(kAnn, "scribble",
                                          "mark -> y: f32[4] scratch t: f32[4] grid (1) block (1) "
                                          "params t, first: int64 = 0, many: int64 = 4",
                                          {}));
  ASSERT_THAT(marked.status, IsOk());
  const Answer found = Run(kAnn, Request(kAnn, "add",
                                         "look -> y: f32[4] scratch t: f32[4] grid (1) block (1) "
                                         "params t, t, y, n: int = 4",
                                         {}));
  ASSERT_THAT(found.status, IsOk());
  constexpr std::uint32_t kPoison = 0x7B7B7B7B;
  EXPECT_THAT(found.Output(), AllOf(SizeIs(4), Each(2 * std::bit_cast<float>(kPoison))));
}

TEST_F(Submitted, WhatItPrintsComesBack) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer answer = Run(
      kAnn,
      Request(kAnn, "print", "print x: f32[N] grid (1) block (32) params x, n: int = N", {1.5}));
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.response.summary().printed(), "x[0] is 1.5\n");
}

TEST_F(Submitted, WhatItPrintsPastThatIsNotInTheLog) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer answer = Run(
      kAnn, Request(kAnn, "print_past", "past x: f32[N] grid (1) block (1) params x", {123457}));
  ASSERT_THAT(answer.status, IsOk());
  const std::string line = " W worker_output_withheld device=\"cpu";
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(server_->Log(), line); }))
      << server_->Log();
  EXPECT_THAT(server_->Log(), Not(HasSubstr("123457")));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

TEST_F(Submitted, G11_AFloodOfPrintIsCutAndSaidSo) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer answer =
      Run(kAnn, Request(kAnn, "print", "print x: f32[N] grid (1) block (32) params x, n: int = N",
                        std::vector<float>(50'000, 1.5F)));
  ASSERT_THAT(answer.status, IsOk());
  const v1::RunSummary& summary = answer.response.summary();
  EXPECT_LE(summary.printed().size(), 16U * 1024);
  EXPECT_GT(summary.printed().size(), 15U * 1024);
  EXPECT_TRUE(summary.printed_truncated());
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

// ---- Principals. ----

TEST_F(Submitted, G8_EachPrincipalHasAProcessOfItsOwn) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const int anns = GuestPid(kAnn);
  EXPECT_EQ(GuestPid(kAnn), anns);
  const int bobs = GuestPid(kBob);
  EXPECT_NE(bobs, anns);
  EXPECT_NE(GuestPid(kAnn), bobs);
  EXPECT_THAT(server_->Metrics(),
              HasSubstr("gridclock_guest_ends_total{device=\"cpu\",reason=\"retired\"} 2"));
}

TEST_F(Submitted, G7_G8_WhatOneLeavesInMemoryTheNextDoesNotSee) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  // How many marks lie behind the output, where nothing of this job is.
  const auto marks = [&](const std::string& token) {
    return Run(token, Request(token, "hunt",
                              "hunt -> y: i32[1] grid (1) block (1) params y, first: int64 = 4096, "
                              "many: int64 = 100000",
                              {}))
        .Output<std::int32_t>();
  };
  const Answer marked =
      Run(kAnn, Request(kAnn, "scribble",
                        "scribble -> y: f32[16] grid (1) block (1) params y, first: int64 = 4096, "
                        "many: int64 = 100000",
                        {}));
  ASSERT_THAT(marked.status, IsOk());
  EXPECT_THAT(marks(kAnn), ElementsAre(100000));
  EXPECT_THAT(marks(kBob), ElementsAre(0));
  EXPECT_THAT(marks(kAnn), ElementsAre(0));
}

TEST_F(Submitted, G8_AGuestThatWritesAllItsMemoryChangesNoBitOfAnothersJob) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--limit-stream-stall-seconds=600"}));
  std::vector<float> x(600'000);
  std::iota(x.begin(), x.end(), 0.5F);
  const std::string bytes = BytesOf(x);
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kBob));
  RawStream bobs(channel_, kStreamRunMethod, context);
  ASSERT_NO_FATAL_FAILURE(BeginUpload(bobs, Streamed(InlineRequest("copy", {1}), x.size()), bytes));

  const Answer scribbled = Run(
      kAnn,
      Request(kAnn, "scribble_shared", "scribble -> y: i64[1] grid (1) block (1) params y", {}));
  ASSERT_THAT(scribbled.status, IsOk());
  EXPECT_THAT(scribbled.Output<std::int64_t>(), ElementsAre(Gt(std::int64_t{1} << 20)));

  ASSERT_TRUE(bobs.Write(ChunkOf(bytes, kChunk)));
  ASSERT_TRUE(bobs.Write(ChunkOf(bytes, 2 * kChunk)));
  bobs.WritesDone();
  EXPECT_TRUE(OutputsOf(bobs) == bytes) << "a guest changed another's job";
  EXPECT_THAT(bobs.Finish(), IsOk());
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

// What arrives of an input lies where a guest of its principal may write, before its own order.
TEST_F(Submitted, AnInputThatArrivesIsNotChangedByACallBetween) {
  ASSERT_NO_FATAL_FAILURE(
      StartServer({"--copiers=2", "--limit-stream-stall-seconds=600"}, "gridclock-test-server"));
  ASSERT_THAT(CheckSquare(kAnn), IsOk());  // The guest is ann's, and has the code.
  constexpr std::size_t kChunks = 16;
  std::vector<float> x(kChunks * kChunk / sizeof(float)), want(x.size());
  std::iota(x.begin(), x.end(), 0.5F);
  std::fill_n(x.begin(), kChunk / sizeof(float), 1e9F);  // What `hunt_shared` looks for.
  for (std::size_t i = 0; i < x.size(); ++i) want[i] = x[i] * x[i];
  const std::string bytes = BytesOf(x);
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kAnn));
  RawStream stream(channel_, kStreamRunMethod, context);
  ASSERT_NO_FATAL_FAILURE(BeginUpload(stream, Streamed(Square(kAnn, {1}), x.size()), bytes));

  // With each call in between it is copied anew.
  std::size_t sent = 1;
  std::int32_t seen = 0;
  const auto send_one = [&] {
    ASSERT_TRUE(stream.Write(ChunkOf(bytes, sent++ * kChunk)));
    absl::SleepFor(absl::Milliseconds(20 * sent));  // Longer each time, until it is there.
  };
  while (seen == 0 && sent + 3 < kChunks) {
    send_one();
    const Answer hunt = Run(
        kAnn, Request(kAnn, "hunt_shared", "hunt -> y: i32[1] grid (1) block (1) params y", {}));
    ASSERT_THAT(hunt.status, IsOk());
    seen = hunt.Output<std::int32_t>().at(0);
  }
  EXPECT_GT(seen, 0) << "nothing is copied early";
  for (int i = 0; i < 2; ++i) {
    send_one();
    const std::string words = "scribble -> y: i64[1] grid (1) block (1) params y";
    ASSERT_THAT(Run(kAnn, Request(kAnn, "scribble_shared", words, {})).status, IsOk());
  }
  while (sent < kChunks) send_one();
  stream.WritesDone();
  EXPECT_TRUE(ValuesOf<float>(OutputsOf(stream)) == want);
  EXPECT_THAT(stream.Finish(), IsOk());
}

// ---- Faults. ----

TEST_F(Submitted, G1_ACrashIsAFaultOfTheKernelAndTheNextJobIsRight) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer crashed = Run(kAnn, Request(kAnn, "crash", "crash grid (1) block (1)", {}));
  EXPECT_THAT(crashed.status, StatusIs(Code::kFailedPrecondition, HasSubstr("signal 11")));
  EXPECT_THAT(crashed.status, ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
  EXPECT_THAT(CheckSquare(kBob), IsOk());
  EXPECT_THAT(server_->Metrics(),
              HasSubstr("gridclock_worker_restarts_total{device=\"cpu\",reason=\"signal\"} 0"));
  const std::regex line(
      " W guest_ended_by_job device=\"cpu\" kernel=\"crash\" job=.* client=\"ann\" "
      "request_id=\"\" trace_id=");
  EXPECT_TRUE(Eventually([&] { return std::regex_search(server_->Log(), line); }))
      << server_->Log();
}

TEST_F(Submitted, G4_AnEndlessOneMeetsItsTimeLimitAndTheNextJobIsRight) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest endless = Request(kAnn, "endless", "endless grid (1) block (1)", {});
  endless.set_kernel_time_limit_seconds(0.1);
  const Answer ended = Run(kAnn, endless);
  EXPECT_THAT(ended.status, StatusIs(Code::kDeadlineExceeded, HasSubstr("0.1 s")));
  EXPECT_THAT(ended.status, ReasonIs("KERNEL_TIME_LIMIT"));
  EXPECT_EQ(DetailsOf(ended.status).metadata.at("limit"), "submitted_kernel_seconds");
  endless.set_kernel_time_limit_seconds(31);
  EXPECT_EQ(DetailsOf(Run(kAnn, endless).status).metadata["limit"], "submitted_kernel_seconds");
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

TEST_F(Submitted, E8_AGuestThatBreaksTheProtocolIsEndedAndTheNextJobIsRight) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer broken = Run(kAnn, Request(kAnn, "break_protocol", "breach grid (1) block (1)", {}));
  EXPECT_THAT(broken.status, StatusIs(Code::kFailedPrecondition, HasSubstr("protocol")));
  EXPECT_THAT(broken.status, ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

TEST_F(Submitted, AModuleThatEndsThreeProcessesIsRunNoMore) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const v1::RunRequest crash = Request(kAnn, "crash", "crash grid (1) block (1)", {});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Run(kAnn, crash).status, ReasonIs("KERNEL_FAULT")) << i;
  const Answer refused = Run(kAnn, crash);
  EXPECT_THAT(refused.status,
              StatusIs(Code::kFailedPrecondition,
                       AllOf(HasSubstr("run no more"), HasSubstr("3 of its runs"))));
  EXPECT_THAT(refused.status, ReasonIs("QUARANTINED"));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
  // Of another principal it is another module.
  EXPECT_THAT(Run(kBob, Request(kBob, "crash", "crash grid (1) block (1)", {})).status,
              ReasonIs("KERNEL_FAULT"));
}

TEST_F(Submitted, SoIsOneThatReachesItsTimeLimitThreeTimes) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest endless = Request(kAnn, "endless", "endless grid (1) block (1)", {});
  endless.set_kernel_time_limit_seconds(0.1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Run(kAnn, endless).status, ReasonIs("KERNEL_TIME_LIMIT")) << i;
    EXPECT_THAT(CheckSquare(kAnn), IsOk());
  }
  EXPECT_THAT(Run(kAnn, endless).status,
              ::testing::AllOf(ReasonIs("QUARANTINED"),
                               StatusIs(Code::kFailedPrecondition,
                                        HasSubstr("the last by killed: time_limit"))));
}

TEST_F(Submitted, AGuestWithoutWorkEndsAndComesBackWhenItIsWanted) {
  ASSERT_NO_FATAL_FAILURE(StartServer({"--limit-guest-idle-seconds=0.2"}));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
  EXPECT_TRUE(Eventually([&] {
    return server_->Metrics().find("guest_ends_total{device=\"cpu\",reason=\"retired\"}") !=
           std::string::npos;
  }));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

// ---- Refusals. ----

TEST_F(Submitted, NativeFunctionsAreOfTestBuildsAlone) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start({.flags = {"--allow-submit"},
                                                                .worker = "gridclock-worker"}));
  v1::LoadRequest request;
  request.set_test_native("square");
  RawResult result;
  EXPECT_TRUE(Eventually([&] {
    result = RawCall(Connect(server->address()), kLoadMethod, {request.SerializeAsString()});
    return DetailsOf(result.status).reason != "WORKER_STARTING";
  }));
  EXPECT_THAT(result.status, StatusIs(Code::kFailedPrecondition, HasSubstr("native functions")));
  EXPECT_THAT(result.status, ReasonIs("NO_TEST_NATIVE"));
}

TEST_F(Submitted, H2_AProgramNeedsTheRoleAndAServerThatTakesCode) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Square(kAnn);
  EXPECT_THAT(Run(kCarol, request).status,
              StatusIs(Code::kPermissionDenied, HasSubstr("'submit'")));
  EXPECT_THAT(Run(kBob, request).status, ReasonIs("NO_MODULE"));
  v1::StreamRunRequest header;
  *header.mutable_header() = request;
  EXPECT_THAT(Call(kCarol, kStreamRunMethod, {header.SerializeAsString()}).status,
              StatusIs(Code::kPermissionDenied, HasSubstr("'submit'")));

  ASSERT_OK_AND_ASSIGN(const auto closed, ServerProcess::Start());
  EXPECT_THAT(RawCall(Connect(closed->address()), kRunMethod, {request.SerializeAsString()}).status,
              ReasonIs("SUBMIT_OFF"));
}

TEST_F(Submitted, A17_F18_WhatDoesNotFitIsToldApart) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Square(kAnn);
  request.mutable_program()->mutable_launches(0)->set_entry("sqare");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kNotFound, HasSubstr("nearest are 'square'")));
  EXPECT_THAT(Run(kAnn, request).status, ReasonIs("NO_ENTRY"));

  request = Square(kAnn);
  request.mutable_program()->set_words("mine x: f32[N -> y");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("program.words")));

  request = Square(kAnn);
  request.mutable_program()->set_words("");
  EXPECT_THAT(Run(kAnn, request).status.code(), Code::kInvalidArgument);

  request = Square(kAnn);
  request.set_kernel("square");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("kernel: want none")));

  request = Square(kAnn);
  for (int i = 0; i < 64; ++i) {
    *request.mutable_program()->add_launches() = request.program().launches(0);
  }
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("want at most 64, got 65")));

  request = Square(kAnn);
  request.mutable_program()->mutable_launches(0)->set_words("block (2048)");
  EXPECT_THAT(Run(kAnn, request).status, StatusIs(Code::kInvalidArgument, HasSubstr("2048")));

  EXPECT_THAT(Load(kAnn, "nosuch").status,
              StatusIs(Code::kNotFound, HasSubstr("no native function 'nosuch'")));
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
}

}  // namespace
}  // namespace gridclock
