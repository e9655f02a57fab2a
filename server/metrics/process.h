// The process_* metrics that every client of Prometheus has.
#ifndef GRIDCLOCK_SERVER_METRICS_PROCESS_H_
#define GRIDCLOCK_SERVER_METRICS_PROCESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/metrics/registry.h"

namespace gridclock {

struct ProcessFacts {
  double cpu_seconds = 0;
  double start_unix_seconds = 0;
  double resident_bytes = 0, virtual_bytes = 0;
  double threads = 0;
};
// From the text of /proc/self/stat and /proc/stat.
absl::StatusOr<ProcessFacts> ParseProcessFacts(absl::string_view self_stat, absl::string_view stat,
                                               double ticks_per_second, double page_bytes);

// Leaves out what /proc does not tell.
void CollectProcess(ScrapeValues& values);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_PROCESS_H_
