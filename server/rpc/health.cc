#include "server/rpc/health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gridclock {

bool AnyDeviceUp(const std::vector<DeviceStatus>& devices) {
  return std::any_of(devices.begin(), devices.end(), TakesCalls);
}

void Health::Update(const std::vector<DeviceStatus>& devices, ServerState state, bool alive) {
  const bool draining = state == ServerState::kDraining;
  const bool ready = state == ServerState::kServing && AnyDeviceUp(devices);
  std::map<std::string, bool> now = {{"", ready},
                                     {"gridclock.v1.KernelService", ready},
                                     {"gridclock.v1.SystemService", !draining},
                                     {"liveness", alive}};
  for (const DeviceStatus& device : devices) {
    now[absl::StrCat("device/", device.info.name)] = !draining && TakesCalls(device);
  }
  if (!Set(now)) return;
  for (const auto& watcher : Watchers()) watcher->Look();
}

bool Health::Set(const std::map<std::string, bool>& now) {
  const MutexLock lock(mutex_);
  if (told_ == now) return false;
  told_ = now;
  return true;
}

std::optional<bool> Health::Serves(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto told = told_.find(name);
  return told == told_.end() ? std::nullopt : std::optional(told->second);
}

void Health::Watch(std::weak_ptr<Watcher> watcher) {
  const MutexLock lock(mutex_);
  std::erase_if(watchers_, [](const std::weak_ptr<Watcher>& one) { return one.expired(); });
  watchers_.push_back(std::move(watcher));
}

std::vector<std::shared_ptr<Health::Watcher>> Health::Watchers() {
  std::vector<std::shared_ptr<Watcher>> alive;
  const MutexLock lock(mutex_);
  for (const auto& watcher : watchers_) {
    if (auto held = watcher.lock()) alive.push_back(std::move(held));
  }
  return alive;
}

}  // namespace gridclock
