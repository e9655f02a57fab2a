// The pages for people, and the same as JSON.
#ifndef GRIDCLOCK_SERVER_METRICS_STATUS_PAGE_H_
#define GRIDCLOCK_SERVER_METRICS_STATUS_PAGE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/core/activity.h"
#include "server/core/kernel_table.h"
#include "server/core/limits.h"
#include "server/core/scheduler.h"

namespace gridclock {

// All that a page shows, as it was at `now`.
struct StatusView {
  std::string version;
  absl::Time now, started;
  bool ready = false;
  std::vector<DeviceStatus> devices;
  std::map<std::string, Scheduler::Usage> queues;
  std::map<std::string, double> usage;  // Of limits, by name.
  Limits limits;
  std::optional<bool> compiler_up;
  Activity activity;
};

// The newest runs; RunsPage shows the others too.
inline constexpr std::size_t kRunsShown = 20;

std::string StatusPage(const StatusView& view);
// What of it changes, for the page's script.
std::string StatusPart(const StatusView& view);
// All kernels that have run.
std::string KernelsPage(const StatusView& view);
// All runs that are kept.
std::string RunsPage(const StatusView& view);
std::string RunPage(const RunRecord& run, absl::Time now);

std::string StatusJson(const StatusView& view);
std::string RunsJson(const StatusView& view);
std::string RunJson(const RunRecord& run);

// Of the pages; built in from server/metrics/page.
absl::string_view PageStyle();
absl::string_view PageScript();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_STATUS_PAGE_H_
