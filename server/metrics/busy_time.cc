#include "server/metrics/busy_time.h"

#include <algorithm>

namespace gridclock {

Tally& BusyTime::Of(const std::string& device) {
  MutexLock lock(mutex_);
  return devices_[device].ended;
}

void BusyTime::Collect(const std::map<std::string, Scheduler::Usage>& now, ScrapeValues& values) {
  constexpr double kSecondsPerNano = 1e-9;
  MutexLock lock(mutex_);
  for (const auto& [name, usage] : now) devices_[name];  // So that each device has a series.
  for (auto& [name, device] : devices_) {
    const auto found = now.find(name);
    const std::int64_t running =
        found == now.end() ? 0 : absl::ToInt64Nanoseconds(found->second.launched_for);
    device.shown = std::max(device.shown, device.ended.Value() + running);
    values.Set(Metric::kDeviceBusy, {name}, static_cast<double>(device.shown) * kSecondsPerNano);
  }
}

}  // namespace gridclock
