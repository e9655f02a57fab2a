#ifndef GRIDCLOCK_SERVER_RPC_RUN_H_
#define GRIDCLOCK_SERVER_RPC_RUN_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/backend.h"

namespace gridclock {

// KernelService.Run: one request, one answer. The thread that hears of the whole request decodes,
// admits, copies and hands the job over; the answer is made on the thread that heard of its end.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeRun(
    Backend& backend, grpc::CallbackServerContext* context);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_RUN_H_
