// What bench says where some of its measurements fail: against a server that the test plays.
#include <algorithm>
#include <csignal>
#include <sstream>

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "client/cli/app.h"
#include "client/cli/interrupt.h"
#include "client/cli/progress.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "gridclock/v1/system.grpc.pb.h"
#include "proto/codec/error.h"
#include "proto/codec/values.h"

namespace gridclock::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// One device of each of `kinds`: "cpu,cuda".
class OneDevice final : public v1::SystemService::Service {
 public:
  explicit OneDevice(const std::string& kinds) : kinds_(absl::StrSplit(kinds, ',')) {}

 private:
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* response) override {
    for (const std::string& kind : kinds_) {
      v1::Device& device = *response->add_devices();
      device.set_name(kind);
      device.set_kind(kind);
    }
    return grpc::Status::OK;
  }

  const std::vector<std::string> kinds_;
};

// A kernel with the variants `good` and `bad` for CPUs, and for GPUs `fast`, which comes first, and
// `slow`; a bad one fails as `failure` says.
class TwoVariants final : public v1::KernelService::Service {
 public:
  explicit TwoVariants(absl::Status failure, const std::string& kind = "cpu")
      : failure_(std::move(failure)), device_(kind) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.RegisterService(&device_);
    server_ = builder.BuildAndStart();
    summary.mutable_timing()->set_warmup_flat(true);
  }
  ~TwoVariants() override { server_->Shutdown(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  v1::RunSummary summary;            // Of what does not fail.
  bool says_samples = false;         // Of what fails, before it does.
  std::string interrupted_by;        // The variant that Ctrl-C comes with.
  std::vector<std::uint64_t> seeds;  // Of the inputs of what came by Run, one call after another.

 private:
  grpc::Status GetKernel(grpc::ServerContext*, const v1::GetKernelRequest*,
                         v1::KernelSpec* response) override {
    KernelSpec spec = *ParseKernelSpec("square x: T[*] -> y: T[*] over x");
    const auto add = [&spec](const char* name, const char* kind) {
      spec.variants.push_back({.name = name, .device_kind = kind, .summary = "", .clauses = {}});
    };
    add("fast", "cuda");
    add("good", "cpu");
    add("bad", "cpu");
    add("slow", "cuda");
    Encode(spec, response);
    return grpc::Status::OK;
  }
  // One value, whatever it is of.
  grpc::Status Run(grpc::ServerContext*, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    seeds.push_back(request->inputs(0).generate().seed());
    if (request->variant() != "bad") {
      v1::Output& y = *response->add_outputs();
      y.set_name("y");
      Encode(OperandValue{.is_list = false, .tensors = {{DType::kF32, {1}}}}, y.mutable_spec());
      y.set_data(std::string(4, '\0'));
      return grpc::Status::OK;
    }
    return {static_cast<grpc::StatusCode>(failure_.code()), std::string(failure_.message()),
            EncodeError(failure_, nullptr)};
  }
  // Samples come before the summary, which has none, as where they are too many for it.
  grpc::Status StreamRun(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::StreamRunResponse, v1::StreamRunRequest>* stream) override {
    v1::StreamRunRequest request;
    stream->Read(&request);
    const std::string variant = request.header().variant();
    if (variant == interrupted_by) std::raise(SIGINT);
    if (variant == "bad") {
      v1::StreamRunResponse before;
      before.mutable_accepted()->set_variant(variant);
      stream->Write(before);
      if (says_samples) {
        for (const double ns : {4000.0, 2000.0, 3000.0}) {
          before.mutable_samples()->add_samples_ns(ns);
        }
        stream->Write(before);
      }
      return {static_cast<grpc::StatusCode>(failure_.code()), std::string(failure_.message()),
              EncodeError(failure_, nullptr)};
    }
    v1::StreamRunResponse response;
    for (const double ns : {9000.0, 1000.0, 1001.0}) {
      response.mutable_samples()->set_warmup(ns == 9000.0);
      response.mutable_samples()->clear_samples_ns();
      response.mutable_samples()->add_samples_ns(ns);
      stream->Write(response);
    }
    *response.mutable_summary() = summary;
    response.mutable_summary()->set_kernel("square");
    response.mutable_summary()->set_variant(variant);
    stream->Write(response);
    return grpc::Status::OK;
  }

  const absl::Status failure_;
  OneDevice device_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Answer {
  int code;
  std::string out, err;
};
Answer Call(const TwoVariants& server, std::vector<std::string> args) {
  std::ostringstream out, err;
  Console console{out, err, {}};
  args.insert(args.end(), {"--shape", "N=8", "--server", server.address()});
  const int code = Main(args, console);
  return {code, out.str(), err.str()};
}
Answer BenchOf(const TwoVariants& server, const std::vector<std::string>& flags) {
  std::vector<std::string> args = {"bench", "square"};
  args.insert(args.end(), flags.begin(), flags.end());
  return Call(server, args);
}
// Of all variants.
Answer Bench(const TwoVariants& server, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"--variant", "all"});
  return BenchOf(server, flags);
}

TEST(BenchTest, AWrongNumberIsCalledByItsFlag) {
  const TwoVariants server(absl::OkStatus());
  const auto why = [&server](const char* flag, const char* value) {
    const Answer answer = BenchOf(server, {flag, value});
    EXPECT_EQ(answer.code, kUsage) << value;
    return answer.err;
  };
  EXPECT_THAT(why("--budget", "1h"),
              HasSubstr("--budget, in seconds: want 1e-06 to 600, got 3600"));
  EXPECT_THAT(why("--budget", "nan"), HasSubstr("--budget: want a time of 0 or more, got 'nan'"));
  EXPECT_THAT(why("--schedule", "0:0:0:1"), HasSubstr("--schedule: active: want 1 to 1000000"));
}

TEST(BenchTest, AVariantThatFailsIsToldAndEndsWithOne) {
  const TwoVariants server(absl::FailedPreconditionError("it faulted"));
  const Answer csv = Bench(server, {"--csv"});
  EXPECT_EQ(csv.code, kFailed);
  EXPECT_THAT(csv.out, HasSubstr("square,good,"));
  EXPECT_THAT(csv.out, Not(HasSubstr("bad")));
  EXPECT_EQ(csv.err, "gridclock: no line for bad isolated: it faulted\n");
  const Answer table = Bench(server, {});
  EXPECT_EQ(table.code, kFailed);
  EXPECT_THAT(table.err, HasSubstr("bad isolated: it faulted"));
  EXPECT_EQ(Bench(server, {"--json"}).code, kFailed);
}

TEST(BenchTest, SamplesThatAreTooManyForTheSummaryAreThoseOfTheStream) {
  const TwoVariants server(absl::FailedPreconditionError("it faulted"));
  const Answer json = Bench(server, {"--json"});
  EXPECT_THAT(json.out, HasSubstr("\"samples\":2,"));
  EXPECT_THAT(json.out, HasSubstr("\"samples_ns\":[1000.0,1001.0]"));
}

TEST(BenchTest, SamplesOfATryBeforeAreDropped) {
  std::vector<double> samples;
  RunEvents events;
  KeepSamples(&samples, &events);
  v1::StreamRunResponse::Samples message;
  message.add_samples_ns(1);
  events.accepted({});
  events.samples(message);
  events.accepted({});
  events.samples(message);
  EXPECT_THAT(samples, ElementsAre(1));
}

// A variant that is too slow is one row less; a server that is gone or a call that is over is the
// end, and what was measured before is shown.
TEST(BenchTest, ALimitOfOneVariantLosesNoOther) {
  for (const absl::Status& limit :
       {WithReason(absl::DeadlineExceededError("too slow"), "KERNEL_TIME_LIMIT"),
        absl::ResourceExhaustedError("too slow"), absl::DeadlineExceededError("too slow"),
        absl::CancelledError("too slow")}) {
    const Answer csv = Bench(TwoVariants(limit), {"--csv"});
    EXPECT_EQ(csv.code, kFailed) << limit;
    EXPECT_THAT(csv.out, HasSubstr("square,good,")) << limit;
    EXPECT_EQ(csv.err, "gridclock: no line for bad isolated: too slow\n") << limit;
  }
}

TEST(BenchTest, AfterTheEndOfTheCallNothingElseIsTried) {
  const auto failures = [](absl::Status failure) {
    const std::string err =
        Bench(TwoVariants(std::move(failure)), {"--csv", "--method", "all"}).err;
    return std::count(err.begin(), err.end(), '\n');
  };
  EXPECT_EQ(failures(absl::DeadlineExceededError("over")), 1);
  EXPECT_EQ(failures(absl::UnauthenticatedError("who?")), 1);
  EXPECT_GT(failures(absl::InternalError("of this one")), 1);
}

// What came before a server was gone or the time was over is shown, and is no measurement.
TEST(BenchTest, AMeasurementThatIsCutOffShowsWhatCameOfIt) {
  for (const absl::Status& failure :
       {absl::DeadlineExceededError("over"), absl::CancelledError("by an operator")}) {
    TwoVariants server(failure);
    server.says_samples = true;
    const Answer table = Bench(server, {});
    EXPECT_EQ(table.code, kFailed);
    EXPECT_THAT(table.out, HasSubstr("\ngood "));
    EXPECT_THAT(table.out,
                HasSubstr("\nbad isolated: CUT OFF after 3 samples of 2.00 µs to 4.00 µs, median "
                          "so far 3.00 µs: no measurement\n"));
    EXPECT_THAT(table.err, HasSubstr("gridclock: bad isolated: ended too early: "));
    const Answer json = Bench(server, {"--json"});
    EXPECT_EQ(json.code, kFailed);
    EXPECT_THAT(json.out, HasSubstr("\"cut_off_samples_ns\":[4000.0,2000.0,3000.0]"));
    const Answer csv = Bench(server, {"--csv"});
    EXPECT_THAT(csv.out, Not(HasSubstr("bad")));
    EXPECT_THAT(csv.err, HasSubstr("no line for bad isolated"));
  }
}

TEST(BenchTest, OneThatIsCutOffIsShownThoughNothingElseIs) {
  TwoVariants server(absl::DeadlineExceededError("over"));
  server.says_samples = true;
  const Answer alone = BenchOf(server, {"--variant", "bad"});
  EXPECT_EQ(alone.code, kFailed);
  EXPECT_THAT(alone.out, HasSubstr("bad isolated: CUT OFF after 3 samples"));
  EXPECT_THAT(alone.out, Not(HasSubstr("median  ")));  // No table without a row.
}

TEST(BenchTest, WhatFailedByItselfIsNotCutOff) {
  for (const absl::Status& failure :
       {absl::InternalError("ours"),
        WithReason(absl::FailedPreconditionError("its"), "KERNEL_FAULT")}) {
    TwoVariants server(failure);
    server.says_samples = true;
    const Answer answer = Bench(server, {});
    EXPECT_THAT(answer.out, AllOf(HasSubstr("\ngood "), Not(HasSubstr("CUT OFF"))));
    EXPECT_THAT(answer.err, HasSubstr("gridclock: no line for bad isolated: "));
  }
}

TEST(BenchTest, OfLinesOneThatIsCutOffIsNone) {
  TwoVariants server(absl::DeadlineExceededError("over"));
  server.says_samples = true;
  const Answer alone = BenchOf(server, {"--variant", "bad", "--csv"});
  EXPECT_EQ(alone.code, kFailed);
  EXPECT_EQ(alone.out, "");
  EXPECT_THAT(alone.err, HasSubstr("over"));
}

// Its retries are over: it is told as of any command, behind the samples.
TEST(BenchTest, AServerThatIsGoneIsUnreachable) {
  TwoVariants server(absl::UnavailableError("gone"));
  server.says_samples = true;
  const Answer table = BenchOf(server, {"--variant", "bad"});
  EXPECT_EQ(table.code, kUnreachable);
  EXPECT_THAT(table.out, HasSubstr("bad isolated: CUT OFF after 3 samples"));
  EXPECT_THAT(table.err, AllOf(HasSubstr("no server answers at "), HasSubstr("gone")));
  const Answer json = BenchOf(server, {"--variant", "bad", "--json"});
  EXPECT_EQ(json.code, kUnreachable);
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"error\""), Not(HasSubstr("\"results\""))));
  EXPECT_EQ(BenchOf(server, {"--variant", "bad", "--csv"}).code, kUnreachable);
}

TEST(BenchTest, CtrlCBetweenTwoMeasurementsIsNotLost) {
  TwoVariants server(absl::InternalError("was asked"));
  server.interrupted_by = "good";
  const Answer answer = Bench(server, {});
  EXPECT_EQ(answer.code, kInterrupted);
  EXPECT_THAT(answer.out, HasSubstr("\ngood "));
  EXPECT_THAT(answer.err, HasSubstr("bad isolated: ended by Ctrl-C\n"));
}

TEST(BenchTest, AfterCtrlCTheCodeSaysSoWhateverCameOfTheMeasurement) {
  TwoVariants server(absl::InternalError("by itself"));
  for (const char* variant : {"good", "bad"}) {
    server.interrupted_by = variant;
    EXPECT_EQ(BenchOf(server, {"--variant", variant}).code, kInterrupted) << variant;
  }
}

// As a shell that is no terminal's has it for what runs in its background.
TEST(BenchTest, CtrlCThatWasIgnoredIsStill) {
  TwoVariants server(absl::OkStatus());
  server.interrupted_by = "good";
  std::signal(SIGINT, SIG_IGN);
  EXPECT_EQ(BenchOf(server, {"--variant", "good"}).code, kOk);
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(BenchTest, CtrlCIsNotBlamedForWhatFailedByItself) {
  TwoVariants server(absl::InternalError("by itself"));
  server.interrupted_by = "bad";
  EXPECT_THAT(Bench(server, {}).err, HasSubstr("bad isolated: by itself\n"));
}

TEST(BenchTest, OfANoisyMeasurementItIsToldWhatEndedIt) {
  TwoVariants server(absl::OkStatus());
  v1::Timing& timing = *server.summary.mutable_timing();
  timing.mutable_statistics()->set_median_ns(1000);
  timing.set_stop(v1::Timing::MAX_SAMPLES);
  const auto shown = [&server] { return BenchOf(server, {"--variant", "good"}).out; };
  EXPECT_THAT(shown(), Not(HasSubstr("ended by")));
  server.summary.add_flags(v1::NOISY);
  EXPECT_THAT(shown(),
              HasSubstr("good isolated: NOISY, ended by max_samples: --samples is used up; "
                        "a longer --budget would change nothing\n"));
  timing.set_stop(v1::Timing::BUDGET);
  EXPECT_THAT(shown(), HasSubstr("good isolated: NOISY, ended by budget: --budget is used up"));
  timing.set_stop(v1::Timing::YIELDED);
  EXPECT_THAT(shown(), HasSubstr("good isolated: NOISY, ended by yielded\n"));
}

TEST(BenchTest, WhereTwoMethodsMayDifferByMuchItIsSaid) {
  TwoVariants server(absl::OkStatus());
  v1::Timing& timing = *server.summary.mutable_timing();
  timing.mutable_statistics()->set_median_ns(20'000);
  timing.set_second_method(v1::DEVICE_TIME);
  timing.set_second_slack_ns(2'000);
  const auto shown = [&server] { return BenchOf(server, {"--variant", "good"}).out; };
  EXPECT_THAT(shown(), Not(HasSubstr("was held against it")));
  timing.set_second_slack_ns(9'000);
  EXPECT_THAT(shown(),
              HasSubstr("good isolated: device_time was held against it within 9.00 µs more "
                        "than usual, for the gaps between its kernels and copies\n"));
}

TEST(BenchTest, EmptyOutputsAreNotVerified) {
  TwoVariants server(absl::OkStatus());
  server.summary.mutable_verification();
  const Answer empty = BenchOf(server, {"--variant", "good", "--verify"});
  EXPECT_EQ(empty.code, kFailed);
  EXPECT_THAT(empty.out, HasSubstr("not verified: the outputs are empty"));
  EXPECT_THAT(empty.err, HasSubstr("square.good has empty outputs, so nothing was compared"));
  EXPECT_THAT(BenchOf(server, {"--variant", "good", "--verify", "--csv"}).out, EndsWith(",,no\n"));
}

TEST(BenchTest, WhatCouldNotBeVerifiedFails) {
  TwoVariants server(absl::OkStatus());
  const std::vector<std::string> good = {"--variant", "good", "--verify"};
  server.summary.mutable_verification()->set_checked(10);
  server.summary.mutable_verification()->set_total(1000);
  EXPECT_EQ(BenchOf(server, good).code, kOk);  // In part.
  server.summary.add_flags(v1::UNVERIFIED);
  const Answer none = BenchOf(server, good);
  EXPECT_EQ(none.code, kFailed);
  EXPECT_THAT(none.err, HasSubstr("square.good was run and could not be verified"));
  EXPECT_EQ(BenchOf(server, {"--variant", "good"}).code, kOk);  // Nobody asked.
  server.summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  server.summary.mutable_verification()->set_launches(1);
  EXPECT_EQ(BenchOf(server, good).code, kOk);  // Its values are right.
  server.summary.mutable_verification()->set_mismatches(1);
  EXPECT_EQ(BenchOf(server, good).code, kMismatch);
}

TEST(BenchTest, ALineOfCsvSaysWhetherItsValuesAreRight) {
  TwoVariants server(absl::OkStatus());
  const auto csv = [&server] {
    return BenchOf(server, {"--variant", "good", "--verify", "--csv"});
  };
  EXPECT_THAT(csv().out, AllOf(HasSubstr(",flags,verified\n"), EndsWith(",,\n")));
  server.summary.mutable_verification()->set_checked(10);
  server.summary.mutable_verification()->set_total(10);
  EXPECT_THAT(csv().out, EndsWith(",,yes\n"));
  server.summary.mutable_verification()->set_total(1000);
  EXPECT_THAT(csv().out, EndsWith(",,partly\n"));
  server.summary.add_flags(v1::UNVERIFIED);
  server.summary.add_flags(v1::NOISY);
  EXPECT_THAT(csv().out, EndsWith(",UNVERIFIED NOISY,no\n"));
  server.summary.mutable_verification()->set_mismatches(1);
  server.summary.mutable_verification()->set_first_mismatch("y[3]: want 1, got 2");
  const Answer differs = csv();
  EXPECT_EQ(differs.code, kMismatch);
  EXPECT_THAT(differs.out, EndsWith(",differs\n"));
  EXPECT_THAT(differs.err, HasSubstr("gridclock: good isolated: DIFFERS in 1 of 10 values: "
                                     "y[3]: want 1, got 2\n"));
  server.summary.mutable_verification()->set_violations(1);
  EXPECT_THAT(csv().out, EndsWith(",forbidden\n"));
}

TEST(BenchTest, ALineOfCsvIsOneWhateverTheServerCallsItsDevice) {
  TwoVariants server(absl::OkStatus());
  server.summary.set_device("a,\"b\"\n\x1b[31m");
  const Answer csv = BenchOf(server, {"--variant", "good", "--csv"});
  EXPECT_THAT(csv.out, HasSubstr("\nsquare,good,\"a,\"\"b\"\"\\x0a\\x1b[31m\",isolated,"));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
}

// But of a method that is there to show how a time can be wrong.
TEST(BenchTest, AVerifiedTimeThatCannotBeFails) {
  TwoVariants server(absl::OkStatus());
  const std::vector<std::string> good = {"--variant", "good", "--verify"};
  server.summary.add_flags(v1::IMPOSSIBLE);
  const Answer answer = BenchOf(server, good);
  EXPECT_EQ(answer.code, kFailed);
  EXPECT_THAT(answer.err, HasSubstr("square.good was faster than its device can be (IMPOSSIBLE)"));
  EXPECT_EQ(BenchOf(server, {"--variant", "good"}).code, kOk);
  server.summary.add_flags(v1::TEACHING_METHOD);
  EXPECT_EQ(BenchOf(server, good).code, kOk);
}

TEST(BenchTest, WhatIsNotKnownIsNoZero) {
  const TwoVariants server(absl::FailedPreconditionError("it faulted"));
  EXPECT_THAT(BenchOf(server, {"--variant", "good", "--csv"}).out, HasSubstr(",,,,,,\n"));
  const Answer load =
      Call(server, {"load", "square.bad", "--rate", "1000", "--seconds", "0.001", "--json"});
  EXPECT_EQ(load.code, kFailed);
  EXPECT_THAT(load.out, HasSubstr("\"p50\":null"));
}

// Two kinds may have a variant of one name: the table does not mix them.
TEST(DescribeTest, VariantsStandByTheirKindAndAMisspeltOneIsToldWhichIsNear) {
  const TwoVariants server(absl::OkStatus(), "cpu,cuda");
  std::ostringstream out, err;
  Console console{out, err, {}};
  EXPECT_EQ(Main({"describe", "square.goood", "--server", server.address()}, console), kFailed);
  EXPECT_THAT(err.str(), HasSubstr("has no variant 'goood'; the nearest are 'good'; it has "
                                   "cuda: fast slow  cpu: good bad"));
  EXPECT_EQ(Main({"describe", "square", "--server", server.address()}, console), kOk);
  EXPECT_THAT(out.str(),
              ContainsRegex("\ngood +cpu[^\n]*\nbad +cpu[^\n]*\nfast +cuda[^\n]*\nslow +cuda"));
}

TEST(CheckTest, ASeedOfZeroIsASeed) {
  const TwoVariants server(absl::OkStatus());
  const Answer answer = Call(server, {"check", "square.good", "--against", "square", "--rounds",
                                      "1", "--seed", "0", "--json"});
  EXPECT_THAT(answer.out, HasSubstr("\"seed\":0"));
  EXPECT_THAT(server.seeds, ElementsAre(0, 0));
}

TEST(BenchTest, AMethodThatTheDeviceLacksIsNoFailureOfAllMethods) {
  const TwoVariants server(
      WithField(absl::InvalidArgumentError("measure.method: a GPU is wanted; here is HOST_SYNC"),
                "measure.method"));
  const Answer all = Bench(server, {"--method", "all"});
  EXPECT_EQ(all.code, kOk);
  EXPECT_THAT(all.err, Not(HasSubstr("a GPU is wanted")));
  const Answer csv = Bench(server, {"--method", "all", "--csv"});
  EXPECT_EQ(csv.code, kOk);
  EXPECT_THAT(csv.err, HasSubstr("no line for bad isolated: a GPU is wanted"));
  EXPECT_THAT(Bench(server, {"--csv"}).err,
              HasSubstr("isolated: a GPU is wanted; here is host_sync"));
  EXPECT_EQ(Bench(server, {"--method", "isolated"}).code, kFailed);
}

TEST(BenchTest, AllVariantsAreThoseOfTheDevicesThatTheServerHas) {
  const absl::Status failure = absl::FailedPreconditionError("it faulted");
  const Answer cpu = Bench(TwoVariants(failure, "cpu"), {"--csv"});
  EXPECT_THAT(cpu.out, HasSubstr("square,good,"));
  EXPECT_THAT(cpu.out, Not(HasSubstr("fast")));
  const Answer gpu = Bench(TwoVariants(failure, "cuda"), {"--csv"});
  EXPECT_EQ(gpu.code, kOk);
  EXPECT_THAT(gpu.out, HasSubstr("square,fast,"));
  EXPECT_THAT(gpu.out, Not(HasSubstr("good")));
  EXPECT_THAT(Bench(TwoVariants(failure, "cpu"), {"--device", "cuda"}).err,
              HasSubstr("no variant of 'square' for device 'cuda'"));
}

}  // namespace
}  // namespace gridclock::cli
