// What a scrape reads from the rest of the server through Sources.
#ifndef GRIDCLOCK_SERVER_METRICS_STATE_H_
#define GRIDCLOCK_SERVER_METRICS_STATE_H_

#include "server/metrics/registry.h"
#include "server/metrics/sources.h"

namespace gridclock {

void CollectState(const Sources& sources, ScrapeValues& values);
// What /readyz says.
bool IsReady(const Sources& sources);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_STATE_H_
