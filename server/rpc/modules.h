// ModuleService: submitted code, compiled and inspected.
#ifndef GRIDCLOCK_SERVER_RPC_MODULES_H_
#define GRIDCLOCK_SERVER_RPC_MODULES_H_

#include "server/rpc/backend.h"
#include "server/rpc/service.h"

namespace gridclock {

class ModuleService final : public Service {
 public:
  explicit ModuleService(Backend& backend);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_MODULES_H_
