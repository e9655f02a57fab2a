#ifndef GRIDCLOCK_SERVER_RPC_ANSWER_H_
#define GRIDCLOCK_SERVER_RPC_ANSWER_H_

#include <memory>
#include <string>

#include <grpcpp/support/byte_buffer.h>

#include "gridclock/v1/kernels.pb.h"
#include "server/core/scheduler.h"
#include "server/rpc/backend.h"

namespace gridclock {

// A RunResponse. Outputs of more than a few KiB are sent from the arena without a copy, and keep
// `job` until they are gone.
grpc::ByteBuffer EncodeRunResponse(const Backend& backend,
                                   const std::shared_ptr<const ActiveJob>& job,
                                   const v1::RunSummary& summary, const Outcome& outcome);

// All bytes of a message.
std::string Flatten(const grpc::ByteBuffer& buffer);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_ANSWER_H_
