// Calls of methods that this server does not have. gRPC itself ends them without a word.
#ifndef GRIDCLOCK_SERVER_RPC_UNKNOWN_METHODS_H_
#define GRIDCLOCK_SERVER_RPC_UNKNOWN_METHODS_H_

#include <grpcpp/generic/async_generic_service.h>

namespace gridclock {

class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  // Ends the call with UNIMPLEMENTED.
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_UNKNOWN_METHODS_H_
