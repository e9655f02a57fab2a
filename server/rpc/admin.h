// AdminService: what operators do to a server that runs. Each call is a line in the log.
#ifndef GRIDCLOCK_SERVER_RPC_ADMIN_H_
#define GRIDCLOCK_SERVER_RPC_ADMIN_H_

#include <grpcpp/support/server_callback.h>

#include "gridclock/v1/admin.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gridclock {

using RawAdminService = v1::AdminService::WithRawCallbackMethod_ListJobs<
    v1::AdminService::WithRawCallbackMethod_CancelJob<
        v1::AdminService::WithRawCallbackMethod_DrainDevice<
            v1::AdminService::WithRawCallbackMethod_UndrainDevice<
                v1::AdminService::WithRawCallbackMethod_RestartWorker<
                    v1::AdminService::WithRawCallbackMethod_Reload<v1::AdminService::Service>>>>>>;

class AdminService final : public RawAdminService {
 public:
  explicit AdminService(Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* DrainDevice(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UndrainDevice(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RestartWorker(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Reload(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;

 private:
  Backend& backend_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_ADMIN_H_
