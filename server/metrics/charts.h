// Small drawings as inline SVG. Colours come from the style sheet, by class.
#ifndef GRIDCLOCK_SERVER_METRICS_CHARTS_H_
#define GRIDCLOCK_SERVER_METRICS_CHARTS_H_

#include <string>

#include "server/core/activity.h"
#include "server/metrics/html.h"

namespace gridclock {

// The runs of the last two minutes: a line for the mean of each two seconds, and around it the
// range from the least to the most of them.
Html Sparkline(const KernelActivity& kernel);
// What that drawing reaches from and to, "1.2 µs to 3.4 µs"; "" if there was no run.
std::string RangeOfRuns(const KernelActivity& kernel);
// How many launches took how long, on a logarithmic axis.
Html LatencyBars(const KernelActivity& kernel);
// The phases of a run on one line.
Html PhaseBar(const RunRecord& run);
// The same, a line for each with its name and time.
Html PhaseTimeline(const RunRecord& run);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_CHARTS_H_
