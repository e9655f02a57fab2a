// Small calls: what is sent again, and until when.
#include <atomic>
#include <memory>

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "gridclock/v1/admin.grpc.pb.h"
#include "gridclock/v1/modules.grpc.pb.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/fake_server.h"

namespace gridclock {
namespace {

// Answers all calls with `answer` and counts them.
class Operated final : public v1::AdminService::Service, public v1::ModuleService::Service {
 public:
  explicit Operated(absl::Status status) : answer_(std::move(status)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<v1::AdminService::Service*>(this));
    builder.RegisterService(static_cast<v1::ModuleService::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~Operated() override { server_->Shutdown(); }

  ClientOptions options() const {
    return {.server = absl::StrCat("127.0.0.1:", port_),
            .tls = {},
            .retry = {.max_attempts = 3, .first_backoff = absl::Milliseconds(1)}};
  }
  std::atomic<int> calls{0};
  std::atomic<double> left_hours{0};  // Until the deadline of the last call.

 private:
  grpc::Status Answer(const grpc::ServerContext& context) {
    ++calls;
    left_hours = absl::ToDoubleHours(absl::FromChrono(context.deadline()) - absl::Now());
    return ToGrpc(answer_);
  }
  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest*,
                         v1::CancelJobResponse*) override {
    return Answer(*context);
  }
  grpc::Status RestartWorker(grpc::ServerContext* context, const v1::RestartWorkerRequest*,
                             v1::RestartWorkerResponse*) override {
    return Answer(*context);
  }
  grpc::Status UndrainDevice(grpc::ServerContext* context, const v1::UndrainDeviceRequest*,
                             v1::UndrainDeviceResponse*) override {
    return Answer(*context);
  }
  grpc::Status Delete(grpc::ServerContext* context, const v1::DeleteModuleRequest*,
                      v1::DeleteModuleResponse*) override {
    return Answer(*context);
  }
  grpc::Status Compile(grpc::ServerContext* context, const v1::CompileRequest*,
                       v1::Module*) override {
    return Answer(*context);
  }

  const absl::Status answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// How often each of the three arrives where all are answered so.
std::vector<int> Arrivals(const absl::Status& answer) {
  Operated server(answer);
  const auto client = Client::Connect(server.options());
  std::vector<int> out;
  EXPECT_FALSE((*client)->CancelJob(7).ok());
  out.push_back(server.calls.exchange(0));
  EXPECT_FALSE((*client)->RestartWorker({}).ok());
  out.push_back(server.calls.exchange(0));
  EXPECT_FALSE((*client)->DeleteModule("00").ok());
  out.push_back(server.calls.exchange(0));
  return out;
}

TEST(ClientCallsTest, WhatMayHaveBeenDoneIsNotSentAgain) {
  using ::testing::ElementsAre;
  EXPECT_THAT(Arrivals(absl::UnavailableError("connection lost")), ElementsAre(1, 1, 1));
  EXPECT_THAT(Arrivals(WithReason(absl::UnavailableError("starting"), "WORKER_STARTING")),
              ElementsAre(1, 1, 1));
  EXPECT_THAT(
      Arrivals(TryAgain(absl::UnavailableError("later"), "QUEUE_FULL", absl::Milliseconds(1))),
      ElementsAre(3, 3, 3));
}

TEST(ClientCallsTest, WhatMayBeDoneTwiceIsSentAgain) {
  Operated server(absl::UnavailableError("connection lost"));
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(server.options()));
  EXPECT_FALSE(client->UndrainDevice("cpu").ok());
  EXPECT_EQ(server.calls, 3);
}

TEST(ClientCallsTest, TheTimeoutIsThatOfTheOptions) {
  Operated server(absl::InternalError("no"));
  ClientOptions options = server.options();
  options.timeout = absl::Hours(100);
  ASSERT_OK_AND_ASSIGN(const auto patient, Client::Connect(options));
  EXPECT_FALSE(patient->UndrainDevice("cpu").ok());
  EXPECT_GT(server.left_hours, 50);
  EXPECT_FALSE(patient->Compile({}).ok());
  EXPECT_GT(server.left_hours, 50);
}

}  // namespace
}  // namespace gridclock
