// Status helpers that abseil 20220623 does not carry, and the machine-readable details of an error.
#ifndef GRIDCLOCK_BASE_STATUS_H_
#define GRIDCLOCK_BASE_STATUS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gridclock {

// What a program reads of an error; on the wire it becomes google.rpc.ErrorInfo, BadRequest and
// RetryInfo. An empty string or nullopt means: not said.
struct ErrorDetails {
  std::string reason;                           // "QUEUE_FULL": a word of the contract.
  std::string field;                            // "inputs[2].shape": what the caller must mend.
  std::optional<absl::Duration> retry_after;    // Wait at least this long before a retry.
  std::map<std::string, std::string> metadata;  // "limit" -> "256".
};

// The same status with `details` attached, in place of any that it had.
absl::Status WithDetails(absl::Status status, const ErrorDetails& details);
absl::Status WithReason(absl::Status status, absl::string_view reason);
absl::Status WithField(absl::Status status, absl::string_view field);
// INVALID_ARGUMENT with the reason BAD_VALUE and the field, which the message begins with:
// "inputs[0].data: expected 12 bytes, got 8".
absl::Status InvalidField(absl::string_view field, absl::string_view text);
// NOT_FOUND with the reason UNKNOWN_NAME and the field that names what is not there.
absl::Status UnknownName(absl::string_view field, absl::string_view message);
// The same status; if it is INVALID_ARGUMENT without a reason, with `reason`.
absl::Status WithReasonIfNone(absl::Status status, absl::string_view reason);

// The details of `status`; empty ones if it carries none.
ErrorDetails DetailsOf(const absl::Status& status);

// Returns `status` with "context: " put before its message; code and payloads stay.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

// The status of a failed system call: "open /x: No such file or directory".
absl::Status ErrnoToStatus(int error, absl::string_view what);

}  // namespace gridclock

#define GC_RETURN_IF_ERROR(expr)                                            \
  do {                                                                      \
    if (absl::Status gc_status = (expr); !gc_status.ok()) return gc_status; \
  } while (false)

#define GC_CONCAT_INNER(a, b) a##b
#define GC_CONCAT(a, b) GC_CONCAT_INNER(a, b)
#define GC_ASSIGN_OR_RETURN(lhs, expr) \
  GC_ASSIGN_OR_RETURN_IMPL(GC_CONCAT(gc_or_, __LINE__), lhs, expr)
#define GC_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)

#endif  // GRIDCLOCK_BASE_STATUS_H_
