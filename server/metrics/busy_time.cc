#include "server/metrics/busy_time.h"

#include <algorithm>

namespace gridclock {

Tally& BusyTime::Of(const std::string& device) {
  MutexLock lock(mutex_);
  return devices_[device].ended;
}

std::map<std::string, std::int64_t> BusyTime::Ended() const {
  MutexLock lock(mutex_);
  std::map<std::string, std::int64_t> ended;
  for (const auto& [name, device] : devices_) ended[name] = device.ended.Value();
  return ended;
}

void BusyTime::Collect(const std::map<std::string, std::int64_t>& ended,
                       const std::map<std::string, Scheduler::Usage>& now, ScrapeValues& values) {
  constexpr double kSecondsPerNano = 1e-9;
  MutexLock lock(mutex_);
  for (const auto& [name, usage] : now) devices_[name];  // So that each device has a series.
  for (auto& [name, device] : devices_) {
    const auto found = now.find(name);
    const std::int64_t running =
        found == now.end() ? 0 : absl::ToInt64Nanoseconds(found->second.launched_for);
    const auto before = ended.find(name);
    device.shown = std::max(device.shown, (before == ended.end() ? 0 : before->second) + running);
    values.Set(Metric::kDeviceBusy, {name}, static_cast<double>(device.shown) * kSecondsPerNano);
  }
}

}  // namespace gridclock
