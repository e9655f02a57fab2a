#include "server/rpc/descriptors.h"

#include <algorithm>

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/units.h"
#include "server/rpc/watched_reads.h"

namespace gridclock {
namespace {

// Of the server itself: log, listeners, gRPC's own, files that are read again, the module cache,
// and those who ask for metrics.
constexpr std::uint64_t kOwn = 64;
// Of a worker, with what it takes for a moment to start the next one; of a compiler as well.
constexpr std::uint64_t kPerWorker = 16;

}  // namespace

std::uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

absl::Status FitConnections(std::uint64_t descriptors, std::size_t workers, Limits& limits) {
  const std::uint64_t reserve = kOwn + kPerWorker * workers;
  if (std::min(descriptors, kMostDescriptors) <= reserve) {
    return absl::InvalidArgumentError(absl::StrCat("RLIMIT_NOFILE lets this process open ",
                                                   descriptors, " descriptors: want ", reserve + 1,
                                                   " or more"));
  }
  const auto left = static_cast<double>(std::min(descriptors, kMostDescriptors) - reserve);
  if (limits.connections <= left) return absl::OkStatus();
  Log(LogLevel::kWarning, "connections_lowered",
      {{"limit", FormatPlain(limits.connections)},
       {"to", FormatPlain(left)},
       {"descriptors", absl::StrCat(descriptors)}});
  limits.connections = left;
  return absl::OkStatus();
}

}  // namespace gridclock
