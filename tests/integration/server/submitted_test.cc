// Programs of submitted code through a real server: run and measured in a process of their
// principal alone, and what they may do wrong. Native functions of the test worker stand in for
// device code.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "gridclock/v1/modules.pb.h"
#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Code = absl::StatusCode;

constexpr char kLoadMethod[] = "/gridclock.v1.ModuleService/Load";
constexpr char kSquareWords[] =
    "mine x: f32[N] -> y: f32[N] grid (1) block (32) params x, y, n: int = N";
constexpr char kAnn[] = "ann-secret", kBob[] = "bob-secret", kCarol[] = "carol-secret";

std::string Hash(const std::string& token) {
  const std::string command =
      absl::StrCat("printf ", token, " | ", BinaryPath("gridclock-server"), " --hash-token");
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[256];
  while (pipe != nullptr && fgets(buffer, sizeof(buffer), pipe) != nullptr) out += buffer;
  if (pipe != nullptr) pclose(pipe);
  return out;
}

template <typename T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

struct Answer {
  absl::Status status;
  v1::RunResponse response;

  template <typename T = float>
  std::vector<T> Output(int index = 0) const {
    if (!status.ok() || index >= response.outputs_size()) return {};
    return ValuesOf<T>(response.outputs(index).data());
  }
};

class Submitted : public ::testing::Test {
 protected:
  // ann and bob may submit, carol may not.
  void StartServer(std::vector<std::string> flags = {}) {
    const std::string tokens = NewFolder() + "/tokens";
    std::ofstream(tokens) << "ann read,run,submit " << Hash(kAnn) << "bob read,run,submit "
                          << Hash(kBob) << "carol read,run " << Hash(kCarol);
    flags.insert(flags.begin(), {"--allow-submit", "--token-file=" + tokens});
    ASSERT_OK_AND_ASSIGN(server_, ServerProcess::Start({.flags = std::move(flags)}));
    channel_ = Connect(server_->address());
  }
  RawResult Call(const std::string& token, const std::string& method,
                 const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.AddMetadata("authorization", "Bearer " + token);
    return RawCall(channel_, method, messages, context);
  }
  Answer Run(const std::string& token, const v1::RunRequest& request) {
    const RawResult result = Call(token, kRunMethod, {request.SerializeAsString()});
    Answer answer{.status = result.status, .response = {}};
    if (result.status.ok()) answer.response.ParseFromString(result.messages.at(0));
    return answer;
  }
  RawResult Load(const std::string& token, const std::string& native) {
    v1::LoadRequest request;
    request.set_test_native(native);
    RawResult result;
    // The first guest may be starting.
    Eventually([&] {
      result = Call(token, kLoadMethod, {request.SerializeAsString()});
      return DetailsOf(result.status).reason != "WORKER_STARTING";
    });
    return result;
  }
  // The id of a module that has this function.
  std::string Native(const std::string& token, const std::string& native) {
    const RawResult result = Load(token, native);
    EXPECT_THAT(result.status, IsOk()) << native;
    v1::Module module;
    if (!result.messages.empty()) module.ParseFromString(result.messages[0]);
    return module.id();
  }
  static void AddLaunch(const std::string& module, const std::string& entry,
                        const std::string& words, v1::RunRequest& request) {
    v1::Program::Launch* launch = request.mutable_program()->add_launches();
    launch->set_module(module);
    launch->set_entry(entry);
    launch->set_words(words);
  }
  // One launch of a native function.
  v1::RunRequest Request(const std::string& token, const std::string& native,
                         const std::string& words, const std::vector<float>& x) {
    v1::RunRequest request = InlineRequest("", x);
    if (x.empty()) request.clear_inputs();
    request.mutable_program()->set_words(words);
    AddLaunch(Native(token, native), native, "", request);
    return request;
  }
  v1::RunRequest Square(const std::string& token, const std::vector<float>& x = {1, 2, 3}) {
    return Request(token, "square", kSquareWords, x);
  }
  absl::Status CheckSquare(const std::string& token) {
    const Answer answer = Run(token, Square(token));
    if (!answer.status.ok()) return answer.status;
    if (answer.Output() == std::vector<float>{1, 4, 9}) return absl::OkStatus();
    return absl::DataLossError("wrong squares");
  }
  // The process that runs this principal's code.
  int GuestPid(const std::string& token) {
    const Answer answer =
        Run(token, Request(token, "pid", "pid -> y: i32[1] grid (1) block (1) params y", {}));
    EXPECT_THAT(answer.status, IsOk());
    const auto pid = answer.Output<std::int32_t>();
    return pid.size() == 1 ? pid[0] : 0;
  }

  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

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
  request.mutable_measure()->set_budget_seconds(0.2);
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
  v1::StreamRunRequest header;
  *header.mutable_header() = Square(kAnn, {1});
  v1::Input* input = header.mutable_header()->mutable_inputs(0);
  input->mutable_spec()->set_dims(0, static_cast<std::int64_t>(x.size()));
  input->clear_data();
  input->mutable_stream();
  header.mutable_header()->mutable_measure()->set_max_samples(10);
  header.mutable_header()->mutable_measure()->set_budget_seconds(0.1);
  std::vector<std::string> messages = {header.SerializeAsString()};
  const std::string bytes(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float));
  constexpr std::size_t kChunk = 1 << 20;
  for (std::size_t at = 0; at < bytes.size(); at += kChunk) {
    v1::StreamRunRequest chunk;
    chunk.mutable_chunk()->set_name("x");
    chunk.mutable_chunk()->set_offset(at);
    chunk.mutable_chunk()->set_data(bytes.substr(at, kChunk));
    messages.push_back(chunk.SerializeAsString());
  }
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
  EXPECT_THAT(found.Output(), Each(2 * std::bit_cast<float>(kPoison)));
}

TEST_F(Submitted, WhatItPrintsComesBack) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const Answer answer = Run(
      kAnn,
      Request(kAnn, "print", "print x: f32[N] grid (1) block (32) params x, n: int = N", {1.5}));
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.response.summary().printed(), "x[0] is 1.5\n");
}

// ---- Verified. ----

// Held against square of the catalogue, on values that the server makes.
v1::RunRequest Verified(v1::RunRequest request) {
  v1::Input* x = request.mutable_inputs(0);
  x->clear_data();
  x->mutable_generate()->set_kind(v1::Generator::RANDN);
  request.set_verify(true);
  request.mutable_reference()->set_kernel("square");
  return request;
}

// The reference computes from what was sent, not from what the code left in its place.
TEST_F(Submitted, AResultInPlaceIsHeldAgainstTheInputAsItWasSent) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  const auto mismatches = [&](v1::RunRequest request, const std::string& reference) {
    request.add_in_place("y");
    request.set_verify(true);
    request.mutable_reference()->set_kernel(reference);
    const Answer answer = Run(kAnn, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.response.summary().verification().mismatches();
  };
  // What scribble writes, 1e9, relu leaves alone.
  EXPECT_EQ(mismatches(Request(kAnn, "scribble",
                               "scribble x: f32[N] -> y: f32[N] over x grid (1) block (1) "
                               "params y, first: int64 = 0, many: int64 = N",
                               {-1, 2, 3}),
                       "relu"),
            3);
  EXPECT_EQ(mismatches(Request(kAnn, "square",
                               "square x: f32[N] -> y: f32[N] over x grid (1) block (1) "
                               "params x, y, n: int = N",
                               {-1, 2, 3}),
                       "square"),
            0);
}

TEST_F(Submitted, AVerifiedProgramIsHeldAgainstAKernelOfTheCatalogue) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Square(kAnn, std::vector<float>(1000)));
  Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification once = answer.response.summary().verification();
  EXPECT_EQ(once.mismatches() + once.violations(), 0) << once.DebugString();
  EXPECT_EQ(once.checked(), 2000);
  EXPECT_EQ(once.launches(), 2);
  EXPECT_EQ(once.fresh_launches(), 1);
  // What comes back is of the values that were asked for.
  v1::RunRequest plain = request;
  plain.clear_verify();
  plain.clear_reference();
  EXPECT_EQ(answer.Output(), Run(kAnn, plain).Output());

  request.mutable_measure()->set_max_samples(20);
  request.mutable_measure()->set_min_samples(20);
  request.mutable_measure()->set_budget_seconds(30);
  request.mutable_measure()->set_warmup_limit_seconds(0.01);
  answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.response.summary().timing().samples_ns_size(), 20);
  EXPECT_EQ(answer.response.summary().verification().fresh_launches(), 20);
  EXPECT_EQ(answer.response.summary().verification().mismatches(), 0);
}

TEST_F(Submitted, AVerifiedProgramThatIsWrongSaysHowWrong) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Request(
      kAnn, "add", "twice x: f32[N] -> y: f32[N] grid (1) block (32) params x, x, y, n: int = N",
      std::vector<float>(64)));
  const Answer answer = Run(kAnn, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Verification& found = answer.response.summary().verification();
  EXPECT_GT(found.mismatches(), 100);
  EXPECT_GT(found.max_abs(), 0.1);
  EXPECT_GT(found.max_ulp(), 1e3);
  EXPECT_THAT(found.first_mismatch(), HasSubstr("launch 1 of 2: y[0]: want "));
}

TEST_F(Submitted, ExpectedValuesGoToNoGuest) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Square(kAnn);
  request.set_verify(true);
  request.mutable_reference();
  const auto expect = [&](const std::vector<float>& y) {
    v1::RunRequest out = request;
    v1::Input* input = out.add_inputs();
    *input = InlineRequest("", y).inputs(0);
    input->set_name("expected.y");
    return Run(kAnn, out);
  };
  const Answer right = expect({1, 4, 9});
  ASSERT_THAT(right.status, IsOk());
  EXPECT_THAT(right.Output(), ElementsAre(1, 4, 9));
  EXPECT_EQ(right.response.summary().verification().mismatches(), 0);
  EXPECT_EQ(right.response.summary().verification().checked(), 3);
  EXPECT_EQ(right.response.summary().verification().fresh_launches(), 0);
  const Answer wrong = expect({1, 4, 8});
  ASSERT_THAT(wrong.status, IsOk());
  EXPECT_EQ(wrong.response.summary().verification().mismatches(), 1);
  EXPECT_THAT(wrong.response.summary().verification().first_mismatch(),
              HasSubstr("y[2]: want 8, got 9"));
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'expected.y'")));
}

TEST_F(Submitted, ExpectedValuesMayComeAsChunks) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::StreamRunRequest header;
  *header.mutable_header() = Square(kAnn);
  header.mutable_header()->set_verify(true);
  header.mutable_header()->mutable_reference();
  v1::Input* expected = header.mutable_header()->add_inputs();
  *expected = header.header().inputs(0);
  expected->set_name("expected.y");
  expected->clear_data();
  expected->mutable_stream();
  v1::StreamRunRequest chunk;
  chunk.mutable_chunk()->set_name("expected.y");
  chunk.mutable_chunk()->set_data(InlineRequest("", {1, 4, 7}).inputs(0).data());
  const RawResult result =
      Call(kAnn, kStreamRunMethod, {header.SerializeAsString(), chunk.SerializeAsString()});
  ASSERT_THAT(result.status, IsOk());
  v1::Verification found;
  for (const std::string& message : result.messages) {
    v1::StreamRunResponse response;
    ASSERT_TRUE(response.ParseFromString(message));
    if (response.has_summary()) found = response.summary().verification();
  }
  EXPECT_THAT(found.first_mismatch(), HasSubstr("y[2]: want 7, got 9"));
}

TEST_F(Submitted, AReferenceThatDoesNotFitIsRefused) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest request = Verified(Square(kAnn));
  request.mutable_reference()->set_kernel("sum");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'sum' gives f32[] of these inputs")));
  request.mutable_reference()->set_kernel("spin");
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("'spin' has 0 inputs")));
  request.clear_reference();
  EXPECT_THAT(Run(kAnn, request).status,
              StatusIs(Code::kInvalidArgument, HasSubstr("reference: want what")));
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
  ASSERT_NO_FATAL_FAILURE(StartServer());
  std::vector<float> x(600'000);
  std::iota(x.begin(), x.end(), 0.5F);
  const std::string bytes(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float));
  v1::StreamRunRequest header;
  header.mutable_header()->set_kernel("copy");
  v1::Input* input = header.mutable_header()->add_inputs();
  input->set_name("x");
  input->mutable_spec()->set_dtype(v1::F32);
  input->mutable_spec()->add_dims(static_cast<std::int64_t>(x.size()));
  input->mutable_stream();
  const auto part = [&](std::size_t from, std::size_t size) {
    v1::StreamRunRequest chunk;
    chunk.mutable_chunk()->set_name("x");
    chunk.mutable_chunk()->set_offset(from);
    chunk.mutable_chunk()->set_data(bytes.substr(from, size));
    return chunk.SerializeAsString();
  };
  grpc::ClientContext context;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", kBob));
  RawStream bobs(channel_, kStreamRunMethod, context);
  ASSERT_TRUE(bobs.Write(header.SerializeAsString()));
  ASSERT_TRUE(bobs.Write(part(0, 1 << 20)));
  std::string message;
  ASSERT_TRUE(bobs.Read(&message));  // Accepted: it has its memory.

  // It may end its own process by this.
  (void)Run(kAnn, Request(kAnn, "scribble_shared", "scribble grid (1) block (1)", {}));

  ASSERT_TRUE(bobs.Write(part(1 << 20, 1 << 20)));
  ASSERT_TRUE(bobs.Write(part(2 << 20, 1 << 20)));
  bobs.WritesDone();
  std::string got;
  while (bobs.Read(&message)) {
    v1::StreamRunResponse response;
    ASSERT_TRUE(response.ParseFromString(message));
    got += response.chunk().data();
  }
  EXPECT_THAT(bobs.Finish(), IsOk());
  EXPECT_TRUE(got == bytes) << "a guest changed another's job";
  EXPECT_THAT(CheckSquare(kAnn), IsOk());
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
}

TEST_F(Submitted, G4_AnEndlessOneMeetsItsTimeLimitAndTheNextJobIsRight) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  v1::RunRequest endless = Request(kAnn, "endless", "endless grid (1) block (1)", {});
  endless.set_kernel_time_limit_seconds(0.1);
  const Answer ended = Run(kAnn, endless);
  EXPECT_THAT(ended.status, StatusIs(Code::kDeadlineExceeded, HasSubstr("0.1 s")));
  EXPECT_THAT(ended.status, ReasonIs("KERNEL_TIME_LIMIT"));
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
