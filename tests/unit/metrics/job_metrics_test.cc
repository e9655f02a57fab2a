#include "server/metrics/job_metrics.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "server/metrics/exposition.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobMetricsTest : public ::testing::Test {
 protected:
  JobMetricsTest() {
    metrics_.SetKnowsKernel([](absl::string_view kernel) { return kernel == "square"; });
    registry_.SetCollector([this](ScrapeValues& values) {
      const auto ended = metrics_.Ended();
      between_();
      metrics_.Collect(ended, queues_, values);
    });
  }
  std::string Text() const { return Expose(Format::kText, registry_.Collect(), nullptr); }

  Registry registry_{{}};
  JobMetrics metrics_{registry_};
  std::map<std::string, Scheduler::Usage> queues_;
  std::function<void()> between_ = [] {};  // While the scheduler is asked.
};

// 1000 floats in, 1000 floats out.
Job SquareJob() {
  Job job;
  job.kernel = "square";
  job.device = "cpu";
  JobInput& input = job.inputs.emplace_back();
  input.value.tensors = {TensorSpec{.dtype = DType::kF32, .shape = {1000}}};
  JobOutput& output = job.outputs.emplace_back();
  output.name = "y";
  output.value = input.value;
  return job;
}

JobResult Done(Outcome outcome) {
  JobResult result;
  result.outcome = std::move(outcome);
  return result;
}

JobResult Failed(absl::Status status) {
  JobResult result;
  result.status = std::move(status);
  return result;
}

Outcome OneLaunch(double ns) {
  Outcome outcome;
  outcome.timing.emplace();
  outcome.timing->samples_ns = {ns};
  outcome.phases = {{PhaseKind::kLaunched, 0, 9'000'000}, {PhaseKind::kFinished, 0, 2'000'000}};
  return outcome;
}

TEST_F(JobMetricsTest, CountsARunItsTimeAndItsBytes) {
  const Job job = SquareJob();
  JobResult result = Done(OneLaunch(1500));
  result.waited = absl::Milliseconds(3);
  metrics_.OnFinished(job, result);

  const std::string text = Text();
  EXPECT_THAT(
      text,
      HasSubstr(R"(gridclock_kernel_runs_total{kernel="square",device="cpu",outcome="ok"} 1)"));
  const std::string duration = "gridclock_kernel_duration_seconds";
  EXPECT_THAT(text, HasSubstr(duration + R"(_bucket{kernel="square",device="cpu",le="1e-06"} 0)"));
  EXPECT_THAT(text,
              HasSubstr(duration + R"(_bucket{kernel="square",device="cpu",le="2.5e-06"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(gridclock_queue_wait_seconds_bucket{device="cpu",le="0.0025"} 0)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_queue_wait_seconds_bucket{device="cpu",le="0.005"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_device_busy_seconds_total{device="cpu"} 0.002)"));
  EXPECT_THAT(text,
              HasSubstr(R"(gridclock_transfer_bytes_total{direction="in",device="cpu"} 4000)"));
  EXPECT_THAT(text,
              HasSubstr(R"(gridclock_transfer_bytes_total{direction="out",device="cpu"} 4000)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_measurements_total{device="cpu"} 0)"));
}

TEST_F(JobMetricsTest, AJobThatRunsKeepsTheDeviceBusyBeforeItEnds) {
  const std::string busy = R"(gridclock_device_busy_seconds_total{device="cpu"} )";
  queues_["cpu"].launched_for = absl::ZeroDuration();
  EXPECT_THAT(Text(), HasSubstr(busy + "0\n"));
  queues_["cpu"].launched_for = absl::Milliseconds(1500);
  EXPECT_THAT(Text(), HasSubstr(busy + "1.5\n"));
  queues_["cpu"].launched_for = absl::ZeroDuration();
  EXPECT_THAT(Text(), HasSubstr(busy + "1.5\n")) << "it has ended, and nobody was told yet";
  JobResult killed = Failed(absl::DeadlineExceededError(""));
  killed.launched_for = absl::Milliseconds(1750);
  metrics_.OnFinished(SquareJob(), killed);
  EXPECT_THAT(Text(), HasSubstr(busy + "1.75\n"));
  metrics_.OnFinished(SquareJob(), Done(OneLaunch(1500)));
  EXPECT_THAT(Text(), HasSubstr(busy + "1.752\n"));
}

TEST_F(JobMetricsTest, AJobThatEndsDuringAScrapeIsNotCountedTwice) {
  queues_["cpu"].launched_for = absl::Seconds(2);
  JobResult killed = Failed(absl::DeadlineExceededError(""));
  killed.launched_for = absl::Seconds(2);
  between_ = [&] { metrics_.OnFinished(SquareJob(), killed); };
  const std::string busy = R"(gridclock_device_busy_seconds_total{device="cpu"} )";
  EXPECT_THAT(Text(), HasSubstr(busy + "2\n"));
  between_ = [] {};
  queues_["cpu"].launched_for = absl::ZeroDuration();
  EXPECT_THAT(Text(), HasSubstr(busy + "2\n"));
}

TEST_F(JobMetricsTest, GeneratedInputsAndDiscardedOutputsMoveNoBytes) {
  Job job = SquareJob();
  job.inputs[0].source = SourceKind::kGenerate;
  job.outputs[0].sink = SinkKind::kDiscard;
  metrics_.OnFinished(job, Done(OneLaunch(1500)));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_transfer_bytes_total{direction="in",device="cpu"} 0)"));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_transfer_bytes_total{direction="out",device="cpu"} 0)"));
}

TEST_F(JobMetricsTest, CopiesToTheDeviceAndBackAreTimed) {
  Outcome outcome = OneLaunch(1500);
  outcome.phases.insert(outcome.phases.begin(), {PhaseKind::kInputCopied, 0, 3'000'000});
  outcome.phases.push_back({PhaseKind::kOutputCopied, 9'000'000, 9'000'000});
  metrics_.OnFinished(SquareJob(), Done(outcome));
  const std::string text = Text();
  const std::string duration = "gridclock_transfer_duration_seconds";
  EXPECT_THAT(text, HasSubstr(duration + R"(_count{direction="in",device="cpu"} 1)"));
  EXPECT_THAT(text, HasSubstr(duration + R"(_sum{direction="in",device="cpu"} 0.003)"));
  EXPECT_THAT(text, HasSubstr(duration + R"(_count{direction="out",device="cpu"} 0)"));
}

TEST_F(JobMetricsTest, EachPhaseIsTimedAndEmptyOnesAreLeftOut) {
  Outcome outcome = OneLaunch(1500);
  outcome.phases = {{PhaseKind::kReceived, 0, 1'000'000},
                    {PhaseKind::kQueued, 1'000'000, 1'000'000},
                    {PhaseKind::kVerified, 2'000'000, 6'000'000},
                    {static_cast<PhaseKind>(0), 0, 1},
                    {static_cast<PhaseKind>(99), 0, 1}};
  metrics_.OnFinished(SquareJob(), Done(outcome));
  const std::string name = "gridclock_phase_duration_seconds";
  EXPECT_THAT(Text(), HasSubstr(name + R"(_sum{phase="received",device="cpu"} 0.001)"));
  EXPECT_THAT(Text(), HasSubstr(name + R"(_count{phase="queued",device="cpu"} 0)"));
  EXPECT_THAT(Text(), HasSubstr(name + R"(_sum{phase="verified",device="cpu"} 0.004)"));
  EXPECT_THAT(Text(), Not(HasSubstr(R"(phase="unknown")")));
}

TEST_F(JobMetricsTest, EverySampleOfAMeasurementCounts) {
  Job job = SquareJob();
  job.measure.emplace();
  Outcome outcome = OneLaunch(0);
  outcome.timing->samples_ns = {1e6, 2e6, 3e6};
  outcome.flags = {Flag::kNoisy, Flag::kTeachingMethod};
  metrics_.OnFinished(job, Done(outcome));
  const std::string text = Text();
  EXPECT_THAT(
      text,
      HasSubstr(R"(gridclock_kernel_duration_seconds_count{kernel="square",device="cpu"} 3)"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(gridclock_kernel_duration_seconds_sum{kernel="square",device="cpu"} 0.006)"));
  EXPECT_THAT(text, HasSubstr(R"(gridclock_measurements_total{device="cpu"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="noisy"} 1)"));
  EXPECT_THAT(
      text,
      HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="teaching_method"} 1)"));
  EXPECT_THAT(text,
              HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="suspect"} 0)"));
}

TEST_F(JobMetricsTest, AMeasurementIsDoubtfulOnceHoweverManyFlagsSaySo) {
  Job job = SquareJob();
  job.measure.emplace();
  Outcome outcome = OneLaunch(1500);
  outcome.flags = {Flag::kSuspect, Flag::kImpossible, Flag::kThrottled, Flag::kSharedDevice};
  metrics_.OnFinished(job, Done(outcome));
  outcome.flags = {Flag::kNoisy, Flag::kUnverified, Flag::kTeachingMethod};
  metrics_.OnFinished(job, Done(outcome));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_total{device="cpu"} 2)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_doubtful_total{device="cpu"} 1)"));
}

TEST_F(JobMetricsTest, MeasurementsOfADeviceAreItsOwnAndThereBeforeTheFirst) {
  metrics_.OnWorkerUp("cuda:1");
  const std::string other = R"({device="cuda:1"} 0)";
  const auto expect_none_there = [&] {
    EXPECT_THAT(Text(), HasSubstr("gridclock_measurements_total" + other));
    EXPECT_THAT(Text(), HasSubstr("gridclock_measurements_doubtful_total" + other));
    EXPECT_THAT(
        Text(),
        HasSubstr(R"(gridclock_measurements_flagged_total{device="cuda:1",flag="suspect"} 0)"));
  };
  expect_none_there();
  Job job = SquareJob();
  job.measure.emplace();
  Outcome outcome = OneLaunch(1500);
  outcome.flags = {Flag::kSuspect};
  metrics_.OnFinished(job, Done(outcome));
  expect_none_there();
}

// It would be a client's to call an operator, or to hide what calls one.
TEST_F(JobMetricsTest, MeasurementsOfSubmittedCodeAreNotCounted) {
  Job job = SquareJob();
  job.measure.emplace();
  job.program = std::make_shared<JobProgram>();
  Outcome outcome = OneLaunch(1500);
  outcome.flags = {Flag::kSuspect};
  metrics_.OnFinished(job, Done(outcome));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_total{device="cpu"} 0)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_doubtful_total{device="cpu"} 0)"));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="suspect"} 0)"));
}

TEST_F(JobMetricsTest, FlagsOfWhatIsNoMeasurementAreNotCounted) {
  Outcome outcome = OneLaunch(1500);
  outcome.flags = {Flag::kImpossible};
  metrics_.OnFinished(SquareJob(), Done(outcome));
  Job stopped = SquareJob();
  stopped.measure.emplace();
  outcome.timing.reset();
  metrics_.OnFinished(stopped, Done(outcome));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_total{device="cpu"} 0)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_measurements_doubtful_total{device="cpu"} 0)"));
  EXPECT_THAT(
      Text(),
      HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="impossible"} 0)"));
}

TEST_F(JobMetricsTest, BytesAndRooflineAreThoseOfEveryLaunch) {
  Job job = SquareJob();
  job.bytes = 8000;
  Outcome outcome = OneLaunch(0);
  outcome.timing->samples_ns = {1e6, 2e6, 3e6};
  outcome.timing->roofline_ns = 5e5;
  metrics_.OnFinished(job, Done(outcome));
  const std::string labels = R"({kernel="square",device="cpu"} )";
  EXPECT_THAT(Text(), HasSubstr("gridclock_kernel_bytes_total" + labels + "24000\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_kernel_roofline_seconds_total" + labels + "0.0015\n"));
}

// Its client says how many bytes, its process which roofline: a counter could run over.
TEST_F(JobMetricsTest, BytesAndRooflineOfSubmittedCodeAreNotCounted) {
  Job job = SquareJob();
  job.program = std::make_shared<JobProgram>();
  job.bytes = 1'000'000'000'000'000'000;
  Outcome outcome = OneLaunch(1500);
  outcome.timing->roofline_ns = 1e18;
  metrics_.OnFinished(job, Done(outcome));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_kernel_duration_seconds_count{kernel="user")"));
  EXPECT_THAT(Text(), Not(HasSubstr("gridclock_kernel_bytes_total{")));
  EXPECT_THAT(Text(), Not(HasSubstr("gridclock_kernel_roofline_seconds_total{")));
}

TEST_F(JobMetricsTest, JobsAreCountedByVariantOfKnownKernelsAlone) {
  Job job = SquareJob();
  job.variant = "simd";
  metrics_.OnFinished(job, Done(OneLaunch(1500)));
  metrics_.OnFinished(job, Done(OneLaunch(1500)));
  job.kernel = "of a client";
  metrics_.OnFinished(job, Done(OneLaunch(1500)));
  const std::string name = "gridclock_kernel_variant_jobs_total";
  EXPECT_THAT(Text(), HasSubstr(name + R"({kernel="square",variant="simd",device="cpu"} 2)"));
  EXPECT_THAT(Text(), HasSubstr(name + R"({kernel="other",variant="other",device="cpu"} 1)"));
  EXPECT_THAT(Text(), Not(HasSubstr("of a client")));
}

TEST_F(JobMetricsTest, KernelTimesAreOfIsolatedLaunchesThatMayBeTrue) {
  for (const Method other : {Method::kHostSync, Method::kBackToBack, Method::kDeviceTime}) {
    Outcome outcome = OneLaunch(1500);
    outcome.timing->method = other;
    metrics_.OnFinished(SquareJob(), Done(outcome));
  }
  Outcome impossible = OneLaunch(1500);
  impossible.flags = {Flag::kSuspect, Flag::kImpossible};
  metrics_.OnFinished(SquareJob(), Done(impossible));
  const std::string count =
      R"(gridclock_kernel_duration_seconds_count{kernel="square",device="cpu"} )";
  EXPECT_THAT(Text(), HasSubstr(count + "0\n"));

  metrics_.OnFinished(SquareJob(), Done(OneLaunch(1500)));
  EXPECT_THAT(Text(), HasSubstr(count + "1\n"));
}

TEST_F(JobMetricsTest, AFlagThatNobodyKnowsIsPassedOver) {
  Job job = SquareJob();
  job.measure.emplace();
  Outcome outcome = OneLaunch(1500);
  outcome.flags = {static_cast<Flag>(0), Flag::kNoisy, static_cast<Flag>(200)};
  metrics_.OnFinished(job, Done(outcome));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_measurements_flagged_total{device="cpu",flag="noisy"} 1)"));
}

TEST_F(JobMetricsTest, QuantilesOfAKernelAreOfItsLaunches) {
  metrics_.OnFinished(SquareJob(), Done(OneLaunch(1500)));
  const Activity activity = metrics_.Read(absl::Now());
  ASSERT_EQ(activity.kernels.size(), 1);
  EXPECT_NEAR(activity.kernels[0].p50_ns, 1500, 150);
}

// They would be those of all kernels for which there was no room.
TEST(CrowdedJobMetricsTest, AKernelWithoutAHistogramOfItsOwnShowsNoQuantiles) {
  Registry registry({.histograms = 1});
  JobMetrics metrics(registry);
  metrics.SetKnowsKernel([](absl::string_view) { return true; });
  for (const char* kernel : {"square", "gelu"}) {
    Job job = SquareJob();
    job.kernel = kernel;
    metrics.OnFinished(job, Done(OneLaunch(1500)));
  }
  const auto text = [&] { return Expose(Format::kText, registry.Collect(), nullptr); };
  const std::string before = text();
  const Activity activity = metrics.Read(absl::Now());
  ASSERT_EQ(activity.kernels.size(), 2);
  for (const KernelActivity& kernel : activity.kernels) {
    EXPECT_EQ(kernel.p50_ns > 0, kernel.kernel == "square") << kernel.kernel;
  }
  EXPECT_EQ(text(), before);
}

TEST_F(JobMetricsTest, SaysHowAJobEnded) {
  const auto ends = [this](absl::Status status) {
    metrics_.OnFinished(SquareJob(), Failed(std::move(status)));
  };
  ends(absl::CancelledError(""));
  ends(absl::DeadlineExceededError(""));
  ends(WithReason(absl::DeadlineExceededError(""), "KERNEL_TIME_LIMIT"));
  ends(WithReason(absl::UnavailableError(""), "WORKER_CRASHED"));
  ends(WithReason(absl::FailedPreconditionError(""), "KERNEL_FAULT"));
  ends(absl::UnavailableError(""));
  ends(absl::InvalidArgumentError(""));
  ends(absl::InternalError(""));
  Outcome wrong = OneLaunch(1500);
  wrong.verification.emplace();
  wrong.verification->mismatches = 1;
  metrics_.OnFinished(SquareJob(), Done(wrong));

  const std::string text = Text();
  for (const std::string outcome : {"cancelled", "deadline", "time_limit", "worker_lost", "fault",
                                    "unavailable", "invalid", "error", "mismatch"}) {
    EXPECT_THAT(text, HasSubstr("device=\"cpu\",outcome=\"" + outcome + "\"} 1\n"));
  }
  EXPECT_THAT(text, HasSubstr("device=\"cpu\",outcome=\"ok\"} 0\n"));
}

// GridclockCallsTurnedAway counts them.
TEST_F(JobMetricsTest, AJobWhoseDeadlinePassedBeforeItWasLaunchedExpired) {
  const std::string expired = R"(gridclock_queue_expired_total{device="cpu"} )";
  metrics_.OnWorkerUp("cpu");
  EXPECT_THAT(Text(), HasSubstr(expired + "0\n")) << "increase() would miss the first";
  const auto ready = [](absl::Status status) {
    JobResult result = Failed(std::move(status));
    result.was_ready = true;
    return result;
  };
  JobResult launched = ready(absl::DeadlineExceededError(""));
  launched.launched_for = absl::Milliseconds(1);
  metrics_.OnFinished(SquareJob(), launched);
  metrics_.OnFinished(SquareJob(), ready(absl::CancelledError("")));
  metrics_.OnFinished(SquareJob(),
                      ready(WithReason(absl::DeadlineExceededError(""), "QUEUE_WAIT")));
  const JobResult slow_upload = Failed(absl::DeadlineExceededError(""));
  metrics_.OnFinished(SquareJob(), slow_upload);
  EXPECT_THAT(Text(), HasSubstr(expired + "0\n"));
  metrics_.OnFinished(SquareJob(), ready(absl::DeadlineExceededError("")));
  EXPECT_THAT(Text(), HasSubstr(expired + "1\n"));
}

Outcome WrongValues(std::int64_t mismatches) {
  Outcome outcome = OneLaunch(1500);
  outcome.verification.emplace();
  outcome.verification->checked = 1000;
  outcome.verification->mismatches = mismatches;
  outcome.verification->first_mismatch = "y[0]: want 1234.5, got 6";
  return outcome;
}

TEST_F(JobMetricsTest, AWrongResultOfTheCatalogueIsCountedAndLoggedWithoutItsValues) {
  Job job = SquareJob();
  job.variant = "simd";
  job.request_id = "night-42";
  metrics_.OnFinished(job, Done(WrongValues(0)));
  const std::string wrong = R"(gridclock_wrong_results_total{kernel="square",device="cpu"} )";
  EXPECT_THAT(Text(), HasSubstr(wrong + "0\n")) << "increase() would miss the first";

  testing::internal::CaptureStderr();
  Outcome outcome = WrongValues(7);
  outcome.verification->violations = 13;
  metrics_.OnFinished(job, Done(outcome));
  FlushLog();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(Text(), HasSubstr(wrong + "1\n"));
  for (const char* part :
       {"wrong_result", "square", "simd", "cpu", "night-42", "7", "13", "1000"}) {
    EXPECT_THAT(log, HasSubstr(part));
  }
  EXPECT_THAT(log, Not(HasSubstr("1234.5")));
}

// GridclockWrongResults takes a series that is born so for a rise.
TEST_F(JobMetricsTest, AKernelWhoseFirstJobIsWrongBeginsWithIt) {
  const std::string wrong = R"(gridclock_wrong_results_total{kernel="square",device="cpu"} )";
  EXPECT_THAT(Text(), Not(HasSubstr(wrong)));
  metrics_.OnFinished(SquareJob(), Done(WrongValues(7)));
  FlushLog();  // The next test looks at what is logged.
  EXPECT_THAT(Text(), HasSubstr(wrong + "1\n"));
}

// Any client could call an operator by what it sends.
TEST_F(JobMetricsTest, WhatAClientChoseToBeWrongIsNoWrongResult) {
  Job named = SquareJob();
  named.variant_named = true;
  Job submitted = SquareJob();
  submitted.program = std::make_shared<JobProgram>();
  Job unknown = SquareJob();
  unknown.kernel = "of a client";
  testing::internal::CaptureStderr();
  for (const Job& job : {named, submitted, unknown}) metrics_.OnFinished(job, Done(WrongValues(7)));
  FlushLog();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("wrong_result")));
  const std::string wrong = "gridclock_wrong_results_total{";
  EXPECT_THAT(Text(), HasSubstr(wrong + R"(kernel="square",device="cpu"} 0)"));
  EXPECT_THAT(Text(), Not(HasSubstr(wrong + R"(kernel="user")")));
  EXPECT_THAT(Text(), Not(HasSubstr(wrong + R"(kernel="other")")));
}

TEST_F(JobMetricsTest, AJobThatNeverRanMovedNothingAndWaitedForNone) {
  metrics_.OnFinished(SquareJob(), Failed(absl::CancelledError("")));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_queue_wait_seconds_count{device="cpu"} 0)"));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_transfer_bytes_total{direction="in",device="cpu"} 0)"));
}

TEST_F(JobMetricsTest, AKernelThatNobodyKnowsIsOther) {
  Job job = SquareJob();
  job.kernel = "a client's text";
  metrics_.OnFinished(job, Done(OneLaunch(1500)));
  metrics_.OnFinished(job, Failed(absl::CancelledError("")));
  EXPECT_THAT(Text(), Not(HasSubstr("a client's text")));
  EXPECT_THAT(Text(), HasSubstr(R"(kernel="other",device="cpu",outcome="ok"} 1)"));
  EXPECT_THAT(Text(), HasSubstr(R"(kernel="other",device="cpu",outcome="cancelled"} 1)"));
}

// Whatever clients call what they submit, and kernels that there are not.
TEST_F(JobMetricsTest, AHundredThousandNamesOfClientsAreTwoSeries) {
  constexpr int kNames = 100'000;
  const auto program = std::make_shared<JobProgram>();
  Job job = SquareJob();
  for (int i = 0; i < kNames; ++i) {
    job.kernel = absl::StrCat("name_of_a_client_", i);
    job.program = i % 2 == 0 ? program : nullptr;
    metrics_.OnFinished(job, Done(OneLaunch(1500)));
  }
  const std::string text = Text();
  EXPECT_LT(text.size(), 1'000'000);
  EXPECT_THAT(text, Not(HasSubstr("name_of_a_client")));
  EXPECT_THAT(text, Not(HasSubstr("gridclock_metric_series_overflow_total")));
  const std::string runs = "gridclock_kernel_runs_total";
  EXPECT_THAT(text, HasSubstr(runs + R"({kernel="user",device="cpu",outcome="ok"} 50000)"));
  EXPECT_THAT(text, HasSubstr(runs + R"({kernel="other",device="cpu",outcome="ok"} 50000)"));
  EXPECT_EQ(metrics_.Read(absl::Now()).kernels.size(), 2);
}

TEST_F(JobMetricsTest, AKernelIsKnownAsSoonAsTheTableKnowsIt) {
  Job job = SquareJob();
  job.kernel = "gelu";
  metrics_.OnFinished(job, Done(OneLaunch(1)));
  metrics_.SetKnowsKernel([](absl::string_view) { return true; });
  metrics_.OnFinished(job, Done(OneLaunch(1)));
  EXPECT_THAT(Text(), HasSubstr(R"(kernel="other",device="cpu",outcome="ok"} 1)"));
  EXPECT_THAT(Text(), HasSubstr(R"(kernel="gelu",device="cpu",outcome="ok"} 1)"));
}

TEST_F(JobMetricsTest, CountsRejectionsByReason) {
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_admission_rejected_total{reason="queue_full"} 0)"));
  // What drains refuse is there before the first of them: rate() would miss it.
  for (const char* reason : {"draining", "device_drained"}) {
    EXPECT_THAT(Text(), HasSubstr(absl::StrCat("rejected_total{reason=\"", reason, "\"} 0")));
  }
  metrics_.OnRejected("cpu", WithReason(absl::ResourceExhaustedError(""), "QUEUE_FULL"));
  metrics_.OnRejected("", InvalidField("queue", "want 1, got 0"));
  metrics_.OnRejected("", WithReason(absl::InternalError(""), "MADE_UP"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_admission_rejected_total{reason="queue_full"} 1)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_admission_rejected_total{reason="bad_value"} 1)"));
  EXPECT_THAT(Text(), HasSubstr(R"(gridclock_admission_rejected_total{reason="internal"} 1)"));
}

TEST_F(JobMetricsTest, CountsLostWorkers) {
  metrics_.OnWorkerUp("cpu");
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_worker_restarts_total{device="cpu",reason="hang"} 0)"));
  metrics_.OnWorkerLost("cpu", "hang");
  metrics_.OnWorkerLost("cpu", "struck by lightning");
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_worker_restarts_total{device="cpu",reason="hang"} 1)"));
  EXPECT_THAT(Text(),
              HasSubstr(R"(gridclock_worker_restarts_total{device="cpu",reason="other"} 1)"));
}

TEST_F(JobMetricsTest, CountsStrayAnswers) {
  metrics_.OnWorkerUp("cpu");
  EXPECT_THAT(Text(), HasSubstr("gridclock_worker_stray_answers_total{device=\"cpu\"} 0\n"));
  metrics_.OnStrayAnswer("cpu");
  EXPECT_THAT(Text(), HasSubstr("gridclock_worker_stray_answers_total{device=\"cpu\"} 1\n"));
}

}  // namespace
}  // namespace gridclock
