// ModuleService: submitted code, compiled and inspected.
#ifndef GRIDCLOCK_SERVER_RPC_MODULES_H_
#define GRIDCLOCK_SERVER_RPC_MODULES_H_

#include <grpcpp/support/server_callback.h>

#include "gridclock/v1/modules.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gridclock {

using RawModuleService =
    v1::ModuleService::WithRawCallbackMethod_Compile<v1::ModuleService::WithRawCallbackMethod_Load<
        v1::ModuleService::WithRawCallbackMethod_Get<v1::ModuleService::WithRawCallbackMethod_List<
            v1::ModuleService::WithRawCallbackMethod_Delete<v1::ModuleService::Service>>>>>;

class ModuleService final : public RawModuleService {
 public:
  explicit ModuleService(Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Load(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request,
                                grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;

 private:
  Backend& backend_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_MODULES_H_
