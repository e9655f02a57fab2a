// What a scrape reads from the rest of the server through Sources.
#ifndef GRIDCLOCK_SERVER_METRICS_STATE_H_
#define GRIDCLOCK_SERVER_METRICS_STATE_H_

#include "server/metrics/registry.h"
#include "server/metrics/sources.h"
#include "server/metrics/status_page.h"

namespace gridclock {

// `queues` is what sources.queue_usage said; `readings` is what devices said when they measured.
void CollectState(const Sources& sources, const std::map<std::string, Scheduler::Usage>& queues,
                  const std::map<std::string, DeviceReading>& readings, ScrapeValues& values);
// The same for people.
void Fill(const Sources& sources, StatusView* view);
// "no device takes calls: cpu is quarantined, cuda:0 is drained"; "": one does.
std::string WhyNoneTakesCalls(const std::vector<DeviceStatus>& devices);
// What /readyz says; "": ready.
std::string WhyNotReady(const Sources& sources);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_STATE_H_
