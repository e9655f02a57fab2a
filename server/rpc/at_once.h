// Calls that are answered where they are received, without waiting.
#ifndef GRIDCLOCK_SERVER_RPC_AT_ONCE_H_
#define GRIDCLOCK_SERVER_RPC_AT_ONCE_H_

#include <grpcpp/support/server_callback.h>

#include "base/status.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/parse.h"
#include "server/rpc/status.h"

namespace gridclock {

// `answer`: absl::Status(const CallMeter&); on success `response` is filled.
template <typename Answer>
grpc::ServerUnaryReactor* AnswerAtOnce(Backend& backend, RpcMethod method,
                                       grpc::CallbackServerContext& context,
                                       const grpc::ByteBuffer& request, grpc::ByteBuffer& response,
                                       const Answer& answer) {
  CallMeter meter(backend, method, context);
  const absl::Status status = answer(meter);
  meter.Bytes(request.Length(), response.Length());
  meter.Finish(status);
  grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

// Reads a request; `serve`, absl::Status(const Request&, Response*), fills the response.
template <typename Request, typename Response, typename Serve>
absl::Status ServeMessage(const Backend& backend, const grpc::ByteBuffer& buffer,
                          grpc::ByteBuffer& response, const Serve& serve) {
  GC_ASSIGN_OR_RETURN(const Request request,
                      ParseRequest<Request>(buffer, backend.limits.control_bytes));
  Response message;
  GC_RETURN_IF_ERROR(serve(request, &message));
  response = ToBuffer(message.SerializeAsString());
  return absl::OkStatus();
}

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_AT_ONCE_H_
