// Small drawings as inline SVG. Colours come from the style sheet, by class.
#ifndef GRIDCLOCK_SERVER_METRICS_CHARTS_H_
#define GRIDCLOCK_SERVER_METRICS_CHARTS_H_

#include "server/core/activity.h"
#include "server/metrics/html.h"

namespace gridclock {

// The medians of the last two minutes: a line, and the range from least to most around it.
Html Sparkline(const KernelActivity& kernel);
// How many launches took how long, on a logarithmic axis.
Html LatencyBars(const KernelActivity& kernel);
// The phases of a run on one line.
Html PhaseBar(const RunRecord& run);
// The same, a line for each with its name and time.
Html PhaseTimeline(const RunRecord& run);

// "input-copied": of a class, and with blanks for people.
absl::string_view PhaseWord(PhaseKind kind);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_CHARTS_H_
