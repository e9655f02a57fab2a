#include "server/rpc/service.h"

#if __has_include(<grpcpp/impl/server_callback_handlers.h>)
#include <grpcpp/impl/server_callback_handlers.h>
#else
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#endif

#include "absl/strings/str_cat.h"

namespace gridclock {

void Service::Add(RpcMethod method, std::function<Reactor*(grpc::CallbackServerContext*)> begin) {
  using grpc::ByteBuffer;
  using grpc::internal::RpcMethod;
  using grpc::internal::RpcServiceMethod;
  const RpcMethodName name = NameOf(method);
  paths_.push_back(absl::StrCat("/", name.service, "/", name.method));
  AddMethod(new RpcServiceMethod(paths_.back().c_str(), RpcMethod::BIDI_STREAMING, nullptr));
  MarkMethodRawCallback(
      static_cast<int>(paths_.size() - 1),
      new grpc::internal::CallbackBidiHandler<ByteBuffer, ByteBuffer>(std::move(begin)));
}

}  // namespace gridclock
