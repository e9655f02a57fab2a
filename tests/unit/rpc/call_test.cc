#include "server/rpc/call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kMostReceived = 4 * 1024 * 1024;  // gRPC's default for clients.
constexpr std::int64_t kMiB = 1 << 20;

v1::RunSummary SummaryWith(std::int64_t output_bytes, std::size_t samples) {
  Job job;
  JobOutput& output = job.outputs.emplace_back();
  output.name = "y";
  output.value = {.is_list = false, .tensors = {{DType::kU8, {output_bytes}}}};
  output.sink = SinkKind::kInline;
  Outcome outcome;
  outcome.timing.emplace().samples_ns.assign(samples, 1234.5);
  v1::RunSummary summary;
  Summarize(job, outcome, absl::UnixEpoch(), &summary);
  return summary;
}

TEST(Summary, HoldsTheSamplesThatFitBesideTheOutputs) {
  EXPECT_EQ(SummaryWith(0, 384 * 1024).timing().samples_ns_size(), 384 * 1024);
  EXPECT_EQ(SummaryWith(kMiB / 2, 384 * 1024).timing().samples_ns_size(), 384 * 1024);
  EXPECT_EQ(SummaryWith(kMiB, 1000).timing().samples_ns_size(), 1000);
}

TEST(Summary, IsShortEnoughForAClientWithOutputsOfAnySize) {
  for (const std::int64_t output : {std::int64_t{0}, kMiB / 2, kMiB, 4 * kMiB, 100 * kMiB}) {
    for (const std::size_t samples : {1000U, 384U * 1024, 500'000U}) {
      const std::size_t size = SummaryWith(output, samples).ByteSizeLong();
      EXPECT_LT(size, samples * 8 + 1000);
      if (output <= kMiB) {
        EXPECT_LT(size + static_cast<std::size_t>(output), kMostReceived);
      }
    }
  }
}

TEST(TimeUntil, ADeadlineThatIsCenturiesAwayIsYetToCome) {
  for (const std::int64_t hours :
       {std::int64_t{1}, std::int64_t{2'562'048}, std::int64_t{99'999'999}}) {
    gpr_timespec deadline = gpr_now(GPR_CLOCK_MONOTONIC);
    deadline.tv_sec += hours * 3600;
    const absl::Duration left = TimeUntil(deadline);
    EXPECT_LE(left, absl::Hours(hours));
    EXPECT_GT(left, absl::Hours(hours) - absl::Minutes(1));
  }
}

TEST(TimeUntil, IsWithoutEndWhereNoDeadlineIsSetAndNegativeBehindOne) {
  EXPECT_EQ(TimeUntil(gpr_inf_future(GPR_CLOCK_MONOTONIC)), absl::InfiniteDuration());
  gpr_timespec deadline = gpr_now(GPR_CLOCK_MONOTONIC);
  deadline.tv_sec -= 1;
  EXPECT_LE(TimeUntil(deadline), -absl::Seconds(1));
}

// gRPC says 1.24 s for 1.234 s.
TEST(Cancelled, IsByTheDeadlineWhereTheClientsOwnPassedBeforeWhatItSaidOfIt) {
  EXPECT_TRUE(IsOfDeadline(-absl::Seconds(1), absl::Seconds(1)));
  EXPECT_TRUE(IsOfDeadline(absl::Milliseconds(15), absl::Milliseconds(1)));
  EXPECT_TRUE(IsOfDeadline(absl::Milliseconds(99), absl::Seconds(10)));
  EXPECT_FALSE(IsOfDeadline(absl::Milliseconds(99), absl::Seconds(1)));
  EXPECT_FALSE(IsOfDeadline(absl::InfiniteDuration(), absl::Hours(1)));
}

TEST(FailedCall, ItsLineHasTheReasonThatTheClientGot) {
  testing::internal::CaptureStderr();
  LogFailedCall(RpcMethod::kRun, WithReason(absl::InternalError(""), "LAUNCH_SHAPE"),
                {.client = "ann", .request_id = "night-42", .job = 7}, {});
  FlushLog();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("call_failed.*LAUNCH_SHAPE.*ann.*night-42"));
}

}  // namespace
}  // namespace gridclock
