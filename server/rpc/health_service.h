// grpc.health.v1: for probes, without a token. gRPC's own would collect requests that never end.
#ifndef GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_
#define GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_

#include "server/core/read_gate.h"
#include "server/rpc/backend.h"
#include "server/rpc/health.h"
#include "server/rpc/service.h"

namespace gridclock {

class HealthService final : public Service {
 public:
  HealthService(Backend& backend, Health& health);

 private:
  ReadGate requests_;  // Of each address.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_HEALTH_SERVICE_H_
