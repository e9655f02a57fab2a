// Where `gridclock top` reads: the JSON pages of a server's metrics address.
#ifndef GRIDCLOCK_CLIENT_CLI_STATUS_SOURCE_H_
#define GRIDCLOCK_CLIENT_CLI_STATUS_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/json.h"

namespace gridclock::cli {

// Why FetchJson fails: its text says what to do.
inline constexpr char kStatusUnreachable[] = "STATUS_UNREACHABLE";

// The page at `path` of an address (IsHostAndPort). UNAVAILABLE (kStatusUnreachable) if nobody
// answers with JSON in time.
absl::StatusOr<Json> FetchJson(const std::string& address, const std::string& path,
                               absl::Duration timeout);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_STATUS_SOURCE_H_
