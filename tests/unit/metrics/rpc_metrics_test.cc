#include "server/metrics/rpc_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "server/metrics/exposition.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

class RpcMetricsTest : public ::testing::Test {
 protected:
  std::string Text() const { return Expose(Format::kText, registry_.Collect(), nullptr); }

  Registry registry_{{}};
  RpcMetrics metrics_{registry_};
};

TEST_F(RpcMetricsTest, EveryMethodIsThereFromTheStart) {
  for (const std::string method :
       {"KernelService/ListKernels", "KernelService/GetKernel", "KernelService/Run",
        "KernelService/StreamRun", "SystemService/GetServerInfo", "SystemService/ListDevices"}) {
    EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_requests_total{method=\"gridclock.v1." + method +
                                  "\",code=\"OK\"} 0\n"));
  }
}

TEST_F(RpcMetricsTest, CountsACallFromItsStartToItsEnd) {
  const std::string run = R"(method="gridclock.v1.KernelService/Run")";
  metrics_.OnRpcStarted(RpcMethod::kRun);
  metrics_.OnRpcStarted(RpcMethod::kRun);
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_in_flight{" + run + "} 2\n"));

  metrics_.OnRpcBytes(RpcMethod::kRun, 70, 30);
  metrics_.OnRpcFinished(RpcMethod::kRun, absl::OkStatus(), absl::Microseconds(80));
  metrics_.OnRpcFinished(RpcMethod::kRun, absl::NotFoundError(""), absl::Seconds(1));
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_in_flight{" + run + "} 0\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_requests_total{" + run + ",code=\"OK\"} 1\n"));
  EXPECT_THAT(Text(),
              HasSubstr("gridclock_rpc_requests_total{" + run + ",code=\"NOT_FOUND\"} 1\n"));
  EXPECT_THAT(Text(),
              HasSubstr("gridclock_rpc_duration_seconds_bucket{" + run + ",le=\"0.0001\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_duration_seconds_count{" + run + "} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_bytes_total{" + run + ",direction=\"in\"} 70\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_rpc_bytes_total{" + run + ",direction=\"out\"} 30\n"));
}

TEST_F(RpcMetricsTest, ACodeThatGrpcDoesNotKnowIsUnknown) {
  metrics_.OnRpcStarted(RpcMethod::kRun);
  metrics_.OnRpcFinished(RpcMethod::kRun, absl::Status(static_cast<absl::StatusCode>(99), ""),
                         absl::Seconds(1));
  EXPECT_THAT(Text(), HasSubstr("KernelService/Run\",code=\"UNKNOWN\"} 1\n"));
}

TEST_F(RpcMetricsTest, WhatIsOutOfServiceOrNotYetInItIsCountedApart) {
  const std::string drained =
      R"(gridclock_rpc_drained_total{method="gridclock.v1.KernelService/Run"} )";
  EXPECT_THAT(Text(), HasSubstr(drained + "0\n"));
  for (const char* reason : {"DRAINING", "DEVICE_DRAINED", "WORKER_STARTING", "COMPILER_STARTING",
                             "WORKER_CRASHED", "COMPILER_LOST", ""}) {
    metrics_.OnRpcStarted(RpcMethod::kRun);
    metrics_.OnRpcFinished(RpcMethod::kRun, WithReason(absl::UnavailableError(""), reason),
                           absl::Seconds(1));
  }
  EXPECT_THAT(Text(), HasSubstr(drained + "4\n"));
  EXPECT_THAT(Text(), HasSubstr("KernelService/Run\",code=\"UNAVAILABLE\"} 7\n"));
}

TEST_F(RpcMetricsTest, WhatTheServerHasNoRoomForIsCountedApart) {
  const std::string turned_away =
      R"(gridclock_rpc_turned_away_total{method="gridclock.v1.KernelService/Run"} )";
  EXPECT_THAT(Text(), HasSubstr(turned_away + "0\n"));
  const auto finish = [&](const absl::Status& status) {
    metrics_.OnRpcStarted(RpcMethod::kRun);
    metrics_.OnRpcFinished(RpcMethod::kRun, status, absl::Seconds(1));
  };
  const absl::Status full = absl::ResourceExhaustedError("");
  for (const char* reason : {"QUEUE_FULL", "MEMORY_FULL"}) {
    finish(WithDetails(
        full,
        {.reason = reason, .field = "", .retry_after = absl::Milliseconds(100), .metadata = {}}));
  }
  finish(WithReason(absl::DeadlineExceededError(""), "QUEUE_WAIT"));
  EXPECT_THAT(Text(), HasSubstr(turned_away + "3\n"));
  // Too little in all; and what has other causes.
  finish(WithReason(full, "MEMORY_FULL"));
  finish(WithReason(full, "TOO_LARGE"));
  finish(WithReason(absl::DeadlineExceededError(""), "KERNEL_TIME_LIMIT"));
  finish(absl::DeadlineExceededError(""));
  finish(WithReason(absl::UnavailableError(""), "DRAINING"));
  finish(absl::OkStatus());
  EXPECT_THAT(Text(), HasSubstr(turned_away + "3\n"));
}

TEST_F(RpcMetricsTest, ConnectionsAreCountedByWhatBecameOfThem) {
  metrics_.OnConnection(ConnectionEvent::kAccepted);
  metrics_.OnConnection(ConnectionEvent::kAccepted);
  metrics_.OnConnection(ConnectionEvent::kRejectedPeer);
  EXPECT_THAT(Text(), HasSubstr("gridclock_connections_total{result=\"accepted\"} 2\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_connections_total{result=\"rejected_peer\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("gridclock_connections_total{result=\"rejected_total\"} 0\n"));
}

}  // namespace
}  // namespace gridclock
