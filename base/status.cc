#include "base/status.h"

#include <cstring>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace gridclock {
namespace {

// The payload is a list of strings: reason, field, retry in ns ("" if none), then key, value, ...
// joined by a byte that no message of ours holds.
constexpr char kUrl[] = "gridclock/error-details";
constexpr char kSeparator = '\x1f';

}  // namespace

absl::Status WithDetails(absl::Status status, const ErrorDetails& details) {
  std::vector<std::string> parts = {
      details.reason, details.field,
      details.retry_after ? absl::StrCat(absl::ToInt64Nanoseconds(*details.retry_after)) : ""};
  for (const auto& [key, value] : details.metadata) {
    parts.push_back(key);
    parts.push_back(value);
  }
  status.SetPayload(kUrl, absl::Cord(absl::StrJoin(parts, std::string(1, kSeparator))));
  return status;
}

ErrorDetails DetailsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kUrl);
  if (!payload) return {};
  const std::vector<std::string> parts = absl::StrSplit(std::string(*payload), kSeparator);
  ErrorDetails details;
  if (parts.size() < 3) return details;
  details.reason = parts[0];
  details.field = parts[1];
  if (int64_t ns = 0; absl::SimpleAtoi(parts[2], &ns)) details.retry_after = absl::Nanoseconds(ns);
  for (size_t i = 3; i + 1 < parts.size(); i += 2) details.metadata[parts[i]] = parts[i + 1];
  return details;
}

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  ErrorDetails details = DetailsOf(status);
  details.reason = std::string(reason);
  return WithDetails(std::move(status), details);
}

absl::Status WithField(absl::Status status, absl::string_view field) {
  ErrorDetails details = DetailsOf(status);
  details.field = std::string(field);
  return WithDetails(std::move(status), details);
}

absl::Status InvalidField(absl::string_view field, absl::string_view text) {
  return WithDetails(absl::InvalidArgumentError(absl::StrCat(field, ": ", text)),
                     {.reason = "BAD_VALUE",
                      .field = std::string(field),
                      .retry_after = std::nullopt,
                      .metadata = {}});
}

absl::Status UnknownName(absl::string_view field, absl::string_view message) {
  return WithField(WithReason(absl::NotFoundError(message), "UNKNOWN_NAME"), field);
}

absl::Status WithReasonIfNone(absl::Status status, absl::string_view reason) {
  const bool named = !absl::IsInvalidArgument(status) || !DetailsOf(status).reason.empty();
  return named ? status : WithReason(std::move(status), reason);
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status out(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

absl::Status ErrnoToStatus(int error, absl::string_view what) {
  return absl::ErrnoToStatus(error, what);
}

}  // namespace gridclock
