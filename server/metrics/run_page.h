// What pages show of a run.
#ifndef GRIDCLOCK_SERVER_METRICS_RUN_PAGE_H_
#define GRIDCLOCK_SERVER_METRICS_RUN_PAGE_H_

#include <string>

#include "server/core/activity.h"
#include "server/metrics/html.h"

namespace gridclock {

// A line of the list of runs.
Html RunRow(const RunRecord& run, absl::string_view age);
Html PhaseLegend();
// A whole page around `content`, which is markup. What the path `part` answers takes its place
// every two seconds; "": it does not change.
std::string PageShell(absl::string_view title, absl::string_view part, const std::string& content);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_RUN_PAGE_H_
