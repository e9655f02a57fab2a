#include "server/rpc/health.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gridclock {
bool AnyDeviceUp(const std::vector<DeviceStatus>& devices) {
  return std::any_of(devices.begin(), devices.end(), TakesCalls);
}

void Health::Update(const std::vector<DeviceStatus>& devices, bool draining, bool alive) {
  const bool ready = !draining && AnyDeviceUp(devices);
  Set("", ready);
  Set("gridclock.v1.KernelService", ready);
  Set("gridclock.v1.SystemService", !draining);
  Set("liveness", alive);
  for (const DeviceStatus& device : devices) {
    Set(absl::StrCat("device/", device.info.name), !draining && TakesCalls(device));
  }
}

void Health::Set(const std::string& name, bool serving) {
  const auto [told, fresh] = told_.try_emplace(name, serving);
  if (!fresh && told->second == serving) return;
  told->second = serving;
  service_.SetServingStatus(name, serving);
}

}  // namespace gridclock
