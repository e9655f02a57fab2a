#include "server/core/device_states.h"

namespace gridclock {

// Found when asked, not kept: jobs begin and end far more often than anyone asks.
std::vector<DeviceStatus> DevicesNow(const KernelTable& table, const Scheduler& scheduler) {
  std::vector<DeviceStatus> devices = table.Devices();
  for (DeviceStatus& device : devices) {
    if (device.state == WorkerState::kReady && scheduler.busy(device.info.name)) {
      device.state = WorkerState::kBusy;
    }
  }
  return devices;
}

}  // namespace gridclock
