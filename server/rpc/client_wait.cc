#include "server/rpc/client_wait.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {

absl::Status ClientWait::Why(absl::string_view act) const {
  return WithReason(
      absl::DeadlineExceededError(absl::StrCat(
          "the client was too slow to ", act, ": ", bytes_, " bytes moved while the server waited ",
          absl::FormatDuration(waited_), " for it; want a message within ",
          absl::FormatDuration(stall_), ", and ", rate_, " bytes per second beyond that")),
      "STREAM_STALLED");
}

}  // namespace gridclock
