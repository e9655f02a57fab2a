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

absl::StatusOr<bool> FirstWorkers::Look(const std::vector<DeviceStatus>& devices, absl::Time now) {
  for (const DeviceStatus& device : devices) {
    const std::string& name = device.info.name;
    if (device.state == WorkerState::kReady) awaited_.erase(name);
    if (!awaited_.contains(name)) continue;
    if (device.state == WorkerState::kQuarantined) {
      return absl::UnavailableError(
          absl::StrCat("device '", name,
                       "': its workers end, or hang, before they are ready; the log says how"));
    }
    if (now >= give_up_) {
      return absl::UnavailableError(
          absl::StrCat("device '", name,
                       "': it took too long for a worker to be ready; the log says what came"));
    }
  }
  return awaited_.empty();
}

}  // namespace gridclock
