// The least that a gRPC callback server can do. Prints its port, then serves until its input ends.
#include <cstdio>
#include <memory>

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include "echo.grpc.pb.h"

namespace {

using gridclock::bench::Bytes;

class Answerer final : public gridclock::bench::EchoService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Echo(grpc::CallbackServerContext* context, const Bytes* request,
                                 Bytes* response) override {
    response->set_data(request->data());
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

int main() {
  Answerer echo;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::printf("127.0.0.1:%d\n", port);
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server->Shutdown();
  return 0;
}
