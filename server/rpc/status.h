#ifndef GRIDCLOCK_SERVER_RPC_STATUS_H_
#define GRIDCLOCK_SERVER_RPC_STATUS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "gridclock/v1/kernels.pb.h"

namespace gridclock {

// How a call ends: with the details of the error, and of what was measured before it (`summary` may
// be null). Where the client shall wait, the trailer grpc-retry-pushback-ms says so besides: retry
// policies of gRPC's own clients read nothing else. Before Finish, once.
grpc::Status EndOf(grpc::ServerContextBase& context, const absl::Status& status,
                   const v1::RunSummary* summary = nullptr);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_STATUS_H_
