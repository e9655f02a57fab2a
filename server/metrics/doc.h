#ifndef GRIDCLOCK_SERVER_METRICS_DOC_H_
#define GRIDCLOCK_SERVER_METRICS_DOC_H_

#include <string>

namespace gridclock {

// docs/metrics.md, all of it.
std::string MetricsPage();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_DOC_H_
