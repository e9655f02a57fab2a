#include "client/cpp/retry.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace gridclock {
namespace {

bool MayHaveEndedItsWorker(const ErrorDetails& details) {
  const auto state = details.metadata.find("execution_state");
  return details.reason == "DEVICE_FAULT" ||
         (state != details.metadata.end() && state->second != "NOT_STARTED");
}

// How many tries a failure is worth.
int AttemptsFor(const RetryOptions& options, const absl::Status& failure, int attempts) {
  const ErrorDetails details = DetailsOf(failure);
  switch (failure.code()) {
    case absl::StatusCode::kUnavailable:
      // Without a reason it is not Gridclock that speaks, but the connection.
      if (details.reason.empty()) {
        return std::min(options.max_attempts, options.max_attempts_unreachable);
      }
      if (MayHaveEndedItsWorker(details)) {
        return std::min(options.max_attempts, options.max_attempts_lost);
      }
      return options.max_attempts;
    case absl::StatusCode::kResourceExhausted:
      return details.retry_after.has_value() ? options.max_attempts : 0;
    case absl::StatusCode::kAlreadyExists:
      return attempts > 1 && details.reason == "IN_PROGRESS" ? options.max_attempts : 0;
    default:
      return 0;
  }
}

}  // namespace

std::optional<absl::Duration> NextTry(const RetryOptions& options, const absl::Status& failure,
                                      int attempts, absl::Duration left, double uniform) {
  if (attempts >= AttemptsFor(options, failure, attempts)) return std::nullopt;
  absl::Duration wait = options.first_backoff * std::pow(options.multiplier, attempts - 1);
  wait = std::min(wait, options.max_backoff);
  const absl::Duration wished = DetailsOf(failure).retry_after.value_or(absl::ZeroDuration());
  if (wished > options.longest_wait) return std::nullopt;
  wait = std::max(wait, wished);
  wait *= 1 + options.jitter * uniform;
  if (wait >= left) return std::nullopt;
  return wait;
}

}  // namespace gridclock
