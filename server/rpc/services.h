// The services of gridclock.v1. All methods are raw: their bytes are parsed here, so that bytes
// which are no message are answered INVALID_ARGUMENT with a text.
#ifndef GRIDCLOCK_SERVER_RPC_SERVICES_H_
#define GRIDCLOCK_SERVER_RPC_SERVICES_H_

#include <grpcpp/support/server_callback.h>

#include "gridclock/v1/kernels.grpc.pb.h"
#include "gridclock/v1/system.grpc.pb.h"
#include "server/rpc/backend.h"

namespace gridclock {

using RawKernelService = v1::KernelService::WithRawCallbackMethod_ListKernels<
    v1::KernelService::WithRawCallbackMethod_GetKernel<v1::KernelService::WithRawCallbackMethod_Run<
        v1::KernelService::WithRawCallbackMethod_StreamRun<v1::KernelService::Service>>>>;

class KernelService final : public RawKernelService {
 public:
  explicit KernelService(Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* ListKernels(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetKernel(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request,
                                grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StreamRun(
      grpc::CallbackServerContext* context) override;

 private:
  Backend& backend_;
};

using RawSystemService = v1::SystemService::WithRawCallbackMethod_GetServerInfo<
    v1::SystemService::WithRawCallbackMethod_ListDevices<v1::SystemService::Service>>;

class SystemService final : public RawSystemService {
 public:
  explicit SystemService(Backend& backend) : backend_(backend) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListDevices(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;

 private:
  Backend& backend_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_SERVICES_H_
