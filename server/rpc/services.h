// The services that read and run.
#ifndef GRIDCLOCK_SERVER_RPC_SERVICES_H_
#define GRIDCLOCK_SERVER_RPC_SERVICES_H_

#include "server/rpc/backend.h"
#include "server/rpc/service.h"

namespace gridclock {

class KernelService final : public Service {
 public:
  explicit KernelService(Backend& backend);
};

class SystemService final : public Service {
 public:
  explicit SystemService(Backend& backend);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_SERVICES_H_
