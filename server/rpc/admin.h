// AdminService: what operators do to a server that runs. Each call is a line in the log.
#ifndef GRIDCLOCK_SERVER_RPC_ADMIN_H_
#define GRIDCLOCK_SERVER_RPC_ADMIN_H_

#include "server/rpc/backend.h"
#include "server/rpc/service.h"

namespace gridclock {

class AdminService final : public Service {
 public:
  explicit AdminService(Backend& backend);

 private:
  void AddOfJobs(Backend& backend);
  void AddOfDevices(Backend& backend);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_ADMIN_H_
