// grpc.health.v1: for probes, without a token. gRPC's own would collect requests that never end.
#ifndef GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_
#define GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/core/read_gate.h"
#include "server/rpc/backend.h"
#include "server/rpc/health.h"
#include "server/rpc/service.h"

namespace gridclock {

// How many streams each address watches health with: nothing else ends them. Thread-safe.
class Watches {
 public:
  explicit Watches(std::size_t most) : most_(most) {}
  // RESOURCE_EXHAUSTED (QUEUE_FULL, with retry_after) beyond the most of one address.
  absl::Status Take(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::size_t most_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, std::size_t> watching_ ABSL_GUARDED_BY(mutex_);
};

class HealthService final : public Service {
 public:
  HealthService(Backend& backend, Health& health);

 private:
  ReadGate requests_;  // Of each address.
  Watches watches_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_
