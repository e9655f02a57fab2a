// The devices as those who ask for their state see them.
#ifndef GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
#define GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/core/kernel_table.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Those of the table; one that is ready there and whose worker holds orders is busy.
std::vector<DeviceStatus> DevicesNow(const KernelTable& table, const Scheduler& scheduler);

// Sees to it that each device is served once. Not thread-safe.
class FirstWorkers {
 public:
  explicit FirstWorkers(const std::vector<std::string>& devices)
      : awaited_(devices.begin(), devices.end()) {}
  // UNAVAILABLE, naming the device, of one that is quarantined and was never ready.
  absl::Status Look(const std::vector<DeviceStatus>& devices);

 private:
  std::set<std::string> awaited_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
