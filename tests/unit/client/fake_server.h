// A server of gridclock.v1 in this process, played by the test.
#ifndef GRIDCLOCK_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
#define GRIDCLOCK_TESTS_UNIT_CLIENT_FAKE_SERVER_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "proto/codec/error.h"

namespace gridclock {

using ServerStream = grpc::ServerReaderWriter<v1::StreamRunResponse, v1::StreamRunRequest>;

inline grpc::Status ToGrpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
          EncodeError(status, nullptr)};
}

// What a server answers that wants the same call again later.
inline absl::Status TryAgain(absl::Status status, const std::string& reason,
                             absl::Duration retry_after) {
  ErrorDetails details;
  details.reason = reason;
  details.retry_after = retry_after;
  return WithDetails(std::move(status), details);
}

class FakeServer final : public v1::KernelService::Service {
 public:
  FakeServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  // The test's part. Called on threads of the server.
  std::function<grpc::Status(const v1::RunRequest&, v1::RunResponse*)> on_run;
  std::function<grpc::Status(ServerStream&)> on_stream;

  // What came, in order.
  std::vector<v1::RunRequest> runs() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return runs_;
  }
  std::string authorization() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return authorization_;
  }

 private:
  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      runs_.push_back(*request);
      const auto token = context->client_metadata().find("authorization");
      if (token != context->client_metadata().end()) {
        authorization_.assign(token->second.data(), token->second.size());
      }
    }
    return on_run(*request, response);
  }
  grpc::Status StreamRun(grpc::ServerContext*, ServerStream* stream) override {
    return on_stream(*stream);
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::vector<v1::RunRequest> runs_;
  std::string authorization_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CLIENT_FAKE_SERVER_H_
