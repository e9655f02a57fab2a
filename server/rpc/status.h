#ifndef GRIDCLOCK_SERVER_RPC_STATUS_H_
#define GRIDCLOCK_SERVER_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "gridclock/v1/kernels.pb.h"

namespace gridclock {

// With the details of the error, and of what was measured before it (`summary` may be null).
grpc::Status ToGrpc(const absl::Status& status, const v1::RunSummary* summary = nullptr);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_STATUS_H_
