// The devices as those who ask for their state see them.
#ifndef GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
#define GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/core/kernel_table.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Those of the table; one that is ready there and whose worker holds orders is busy.
std::vector<DeviceStatus> DevicesNow(const KernelTable& table, const Scheduler& scheduler);

// Sees to it that each device is served once. Not thread-safe.
class FirstWorkers {
 public:
  // From `give_up` on a device that was never ready is taken for one that cannot be.
  FirstWorkers(const std::vector<std::string>& devices, absl::Time give_up)
      : awaited_(devices.begin(), devices.end()), give_up_(give_up) {}
  // Whether each was ready once. UNAVAILABLE, naming the device, of one that was not and is
  // quarantined, or has had its time.
  absl::StatusOr<bool> Look(const std::vector<DeviceStatus>& devices, absl::Time now);

 private:
  std::set<std::string> awaited_;
  const absl::Time give_up_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_DEVICE_STATES_H_
