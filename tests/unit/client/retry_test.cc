#include "client/cpp/retry.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/unit/client/fake_server.h"

namespace gridclock {
namespace {

constexpr absl::Duration kForEver = absl::InfiniteDuration();

absl::Status Full(absl::Duration retry_after) {
  return TryAgain(absl::ResourceExhaustedError("queue"), "QUEUE_FULL", retry_after);
}

TEST(RetryTest, WaitsDoubleUpToALimitAndGrowByChance) {
  const RetryOptions options{.max_attempts = 100,
                             .first_backoff = absl::Milliseconds(50),
                             .max_backoff = absl::Milliseconds(150),
                             .multiplier = 2,
                             .jitter = 0.2};
  const auto starting = WithReason(absl::UnavailableError("x"), "WORKER_STARTING");
  EXPECT_EQ(NextTry(options, starting, 1, kForEver, 0), absl::Milliseconds(50));
  EXPECT_EQ(NextTry(options, starting, 2, kForEver, 0), absl::Milliseconds(100));
  EXPECT_EQ(NextTry(options, starting, 3, kForEver, 0), absl::Milliseconds(150));
  EXPECT_EQ(NextTry(options, starting, 1, kForEver, 0.5), absl::Milliseconds(55));
}

TEST(RetryTest, TheServersWishIsALowerBound) {
  EXPECT_EQ(NextTry({}, Full(absl::Seconds(3)), 1, kForEver, 0), absl::Seconds(3));
}

TEST(RetryTest, AServerThatWantsTooLongAWaitIsNotWaitedFor) {
  const RetryOptions options{.longest_wait = absl::Seconds(3)};
  EXPECT_TRUE(NextTry(options, Full(absl::Seconds(3)), 1, kForEver, 0).has_value());
  EXPECT_EQ(NextTry(options, Full(absl::Seconds(4)), 1, kForEver, 0), std::nullopt);
}

TEST(RetryTest, NeverBeyondTheDeadline) {
  EXPECT_EQ(NextTry({}, Full(absl::Seconds(3)), 1, absl::Seconds(3), 0), std::nullopt);
}

TEST(RetryTest, FullWithoutATimeIsFinal) {
  EXPECT_EQ(NextTry({}, absl::ResourceExhaustedError("too large"), 1, kForEver, 0), std::nullopt);
}

TEST(RetryTest, WhatARetryCannotMendIsFinal) {
  for (const absl::Status& status :
       {absl::FailedPreconditionError("x"), absl::InvalidArgumentError("x"),
        absl::InternalError("x"), absl::DeadlineExceededError("x"), absl::CancelledError("x"),
        absl::NotFoundError("x"), absl::PermissionDeniedError("x")}) {
    const auto with_time = TryAgain(status, "", absl::Milliseconds(1));
    EXPECT_EQ(NextTry({}, with_time, 1, kForEver, 0), std::nullopt) << status;
  }
}

TEST(RetryTest, ALostConnectionIsTriedLessOften) {
  EXPECT_TRUE(NextTry({}, absl::UnavailableError("refused"), 2, kForEver, 0).has_value());
  EXPECT_FALSE(NextTry({}, absl::UnavailableError("refused"), 3, kForEver, 0).has_value());
}

TEST(RetryTest, ACallThatMayHaveEndedItsWorkerIsTriedLessOften) {
  const auto lost = [](const std::string& reason, const std::string& state) {
    return WithDetails(absl::UnavailableError("x"), {.reason = reason,
                                                     .field = "",
                                                     .retry_after = absl::Milliseconds(50),
                                                     .metadata = {{"execution_state", state}}});
  };
  const auto fault = WithReason(absl::UnavailableError("x"), "DEVICE_FAULT");
  for (const auto& failure : {lost("WORKER_CRASHED", "UNKNOWN"), fault}) {
    EXPECT_TRUE(NextTry({}, failure, 2, kForEver, 0).has_value()) << failure;
    EXPECT_FALSE(NextTry({}, failure, 3, kForEver, 0).has_value()) << failure;
    EXPECT_FALSE(NextTry({.max_attempts = 1}, failure, 1, kForEver, 0).has_value()) << failure;
  }
  const auto not_begun = lost("WORKER_CRASHED", "NOT_STARTED");
  EXPECT_TRUE(NextTry({}, not_begun, 7, kForEver, 0).has_value());
  EXPECT_FALSE(NextTry({}, not_begun, 8, kForEver, 0).has_value());
}

TEST(RetryTest, OneAttemptMeansNone) {
  EXPECT_EQ(NextTry({.max_attempts = 1}, Full(absl::Milliseconds(1)), 1, kForEver, 0),
            std::nullopt);
}

TEST(RetryTest, StillRunningIsWaitedForOnlyByARetry) {
  const auto running = WithReason(absl::AlreadyExistsError("x"), "IN_PROGRESS");
  EXPECT_EQ(NextTry({}, running, 1, kForEver, 0), std::nullopt);
  EXPECT_TRUE(NextTry({}, running, 2, kForEver, 0).has_value());
}

}  // namespace
}  // namespace gridclock
