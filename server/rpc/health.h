#ifndef GRIDCLOCK_SERVER_RPC_HEALTH_H_
#define GRIDCLOCK_SERVER_RPC_HEALTH_H_

#include <map>
#include <string>
#include <vector>

#include <grpcpp/health_check_service_interface.h>

#include "server/core/kernel_table.h"

namespace gridclock {

// Keeps grpc.health.v1 truthful: "" and gridclock.v1.KernelService while a device can take work,
// gridclock.v1.SystemService and `liveness` while the server itself answers, device/NAME for each
// device. Not thread-safe: one thread updates.
class Health {
 public:
  // `service` belongs to the gRPC server.
  explicit Health(grpc::HealthCheckServiceInterface& service) : service_(service) {}

  // Compares and tells what changed; watchers hear of it at once. `alive`: connections are
  // accepted.
  void Update(const std::vector<DeviceStatus>& devices, bool draining, bool alive);

 private:
  void Set(const std::string& name, bool serving);

  grpc::HealthCheckServiceInterface& service_;
  std::map<std::string, bool> told_;
};

// True while at least one device takes calls: it is ready or busy, and not drained.
bool AnyDeviceUp(const std::vector<DeviceStatus>& devices);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEALTH_H_
