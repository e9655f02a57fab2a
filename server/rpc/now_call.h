// Calls that are answered where their request came, without waiting.
#ifndef GRIDCLOCK_SERVER_RPC_NOW_CALL_H_
#define GRIDCLOCK_SERVER_RPC_NOW_CALL_H_

#include "base/status.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/parse.h"
#include "server/rpc/unary_call.h"

namespace gridclock {

// Reads a request; `serve`, absl::Status(const Request&, Response*), fills the response.
template <typename Request, typename Response, typename Serve>
absl::StatusOr<grpc::ByteBuffer> ServeMessage(const Backend& backend,
                                              const grpc::ByteBuffer& buffer, const Serve& serve) {
  GC_ASSIGN_OR_RETURN(
      const Request request,
      ParseRequest<Request>(buffer, {backend.limits.control_bytes, "control_bytes"}));
  Response message;
  GC_RETURN_IF_ERROR(serve(request, &message));
  return ToBuffer(message.SerializeAsString());
}

// For readers.
template <typename Request, typename Response, typename Serve>
class NowCall final : public UnaryCall {
 public:
  NowCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
          const Serve& serve)
      : UnaryCall(backend, method, context, SmallRequests(backend)), serve_(serve) {}

 private:
  absl::StatusOr<std::string> Authorize() override {
    return backend_.authenticator.Authorize(context_, Role::kRead);
  }
  absl::Status Accept(const grpc::ByteBuffer& request) override {
    auto response = ServeMessage<Request, Response>(backend_, request, serve_);
    GC_RETURN_IF_ERROR(response.status());
    Reply(*std::move(response));
    return absl::OkStatus();
  }

  const Serve& serve_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_NOW_CALL_H_
