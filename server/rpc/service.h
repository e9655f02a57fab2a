#ifndef GRIDCLOCK_SERVER_RPC_SERVICE_H_
#define GRIDCLOCK_SERVER_RPC_SERVICE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/core/rpc_observer.h"
#include "server/rpc/backend.h"

namespace gridclock {

using Reactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

// A call that keeps itself as long as gRPC knows it.
template <typename Call, typename... Arguments>
Reactor* BeginCall(Arguments&&... arguments) {
  auto call = std::make_shared<Call>(std::forward<Arguments>(arguments)...);
  call->Begin();
  return call.get();
}

// One service whose methods are all streams of bytes to gRPC: what they are to clients is the
// .proto's. Bytes are parsed by the calls, so that those which are no message are answered
// INVALID_ARGUMENT with a text.
class Service : public grpc::Service {
 protected:
  void Add(RpcMethod method, std::function<Reactor*(grpc::CallbackServerContext*)> begin);

  // Calls that `serve` answers.
  template <template <typename, typename, typename> class Call, typename Request, typename Response,
            typename Serve>
  void AddServed(Backend& backend, RpcMethod method, Serve serve) {
    Add(method, [&backend, method, serve](grpc::CallbackServerContext* context) {
      return BeginCall<Call<Request, Response, Serve>>(backend, method, *context, serve);
    });
  }

 private:
  std::deque<std::string> paths_;  // gRPC keeps their addresses.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_SERVICE_H_
