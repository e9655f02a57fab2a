// What grpc.health.v1 says of this server.
#ifndef GRIDCLOCK_SERVER_RPC_HEALTH_H_
#define GRIDCLOCK_SERVER_RPC_HEALTH_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "server/core/kernel_table.h"

namespace gridclock {

enum class ServerState {
  kStarting,  // Nobody has been told yet that it serves.
  kServing,
  kDraining,
};

// By name, whether it serves: "" and gridclock.v1.KernelService while a device can take work,
// gridclock.v1.SystemService and `liveness` while the server itself answers, device/NAME for each
// device. Thread-safe; one thread updates.
class Health {
 public:
  class Watcher {
   public:
    virtual ~Watcher() = default;
    // What it watches may have changed. Called without the lock.
    virtual void Look() = 0;
  };

  // Watchers hear of what changed at once. `alive`: connections are accepted.
  void Update(const std::vector<DeviceStatus>& devices, ServerState state, bool alive)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // nullopt: there is no such name.
  std::optional<bool> Serves(const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);

  void Watch(std::weak_ptr<Watcher> watcher) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // True if that is new.
  bool Set(const std::map<std::string, bool>& now) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Watcher>> Watchers() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, bool> told_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mutex_);
};

// True while at least one device takes calls: it is ready or busy, and not drained.
bool AnyDeviceUp(const std::vector<DeviceStatus>& devices);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEALTH_H_
