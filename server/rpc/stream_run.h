#ifndef GRIDCLOCK_SERVER_RPC_STREAM_RUN_H_
#define GRIDCLOCK_SERVER_RPC_STREAM_RUN_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/backend.h"

namespace gridclock {

// KernelService.StreamRun: header and chunks up; accepted, samples, outputs and summary down.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeStreamRun(
    Backend& backend, grpc::CallbackServerContext* context);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_STREAM_RUN_H_
