#include "server/core/device_states.h"

#include "absl/strings/str_cat.h"

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

absl::Status FirstWorkers::Look(const std::vector<DeviceStatus>& devices) {
  for (const DeviceStatus& device : devices) {
    const std::string& name = device.info.name;
    if (device.state == WorkerState::kQuarantined && awaited_.contains(name)) {
      return absl::UnavailableError(
          absl::StrCat("device '", name, "': its workers end before they are ready"));
    }
    if (device.state == WorkerState::kReady) awaited_.erase(name);
  }
  return absl::OkStatus();
}

}  // namespace gridclock
