// What bench says where some of its measurements fail: against a server that the test plays.
#include <sstream>

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/app.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "gridclock/v1/system.grpc.pb.h"
#include "proto/codec/error.h"
#include "proto/codec/values.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One device of `kind`.
class OneDevice final : public v1::SystemService::Service {
 public:
  explicit OneDevice(std::string kind) : kind_(std::move(kind)) {}

 private:
  grpc::Status ListDevices(grpc::ServerContext*, const v1::ListDevicesRequest*,
                           v1::ListDevicesResponse* response) override {
    response->add_devices()->set_name(kind_);
    response->mutable_devices(0)->set_kind(kind_);
    return grpc::Status::OK;
  }

  const std::string kind_;
};

// A kernel with the variants `good` and `bad` for CPUs, and `fast` for GPUs, which comes first; a
// bad one fails as `failure` says.
class TwoVariants final : public v1::KernelService::Service {
 public:
  explicit TwoVariants(absl::Status failure, const std::string& kind = "cpu")
      : failure_(std::move(failure)), device_(kind) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.RegisterService(&device_);
    server_ = builder.BuildAndStart();
  }
  ~TwoVariants() override { server_->Shutdown(); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  grpc::Status GetKernel(grpc::ServerContext*, const v1::GetKernelRequest*,
                         v1::KernelSpec* response) override {
    KernelSpec spec = *ParseKernelSpec("square x: T[*] -> y: T[*] over x");
    spec.variants.push_back({.name = "fast", .device_kind = "cuda", .summary = "", .clauses = {}});
    for (const char* name : {"good", "bad"}) {
      spec.variants.push_back({.name = name, .device_kind = "cpu", .summary = "", .clauses = {}});
    }
    Encode(spec, response);
    return grpc::Status::OK;
  }
  grpc::Status Run(grpc::ServerContext*, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    if (request->variant() == "bad") {
      return {static_cast<grpc::StatusCode>(failure_.code()), std::string(failure_.message()),
              EncodeError(failure_, nullptr)};
    }
    response->mutable_summary()->set_kernel("square");
    response->mutable_summary()->set_variant(request->variant());
    response->mutable_summary()->mutable_timing()->add_samples_ns(1000);
    return grpc::Status::OK;
  }

  const absl::Status failure_;
  OneDevice device_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Answer {
  int code;
  std::string out, err;
};
Answer Bench(const TwoVariants& server, const std::vector<std::string>& flags) {
  std::ostringstream out, err;
  Console console{out, err, {}};
  std::vector<std::string> args = {"bench", "square", "--shape", "N=8", "--variant", "all"};
  args.insert(args.end(), {"--server", server.address()});
  args.insert(args.end(), flags.begin(), flags.end());
  const int code = Main(args, console);
  return {code, out.str(), err.str()};
}

TEST(BenchTest, AVariantThatFailsIsToldAndEndsWithOne) {
  const TwoVariants server(absl::FailedPreconditionError("it faulted"));
  const Answer csv = Bench(server, {"--csv"});
  EXPECT_EQ(csv.code, kFailed);
  EXPECT_THAT(csv.out, HasSubstr("square,good,"));
  EXPECT_THAT(csv.out, Not(HasSubstr("bad")));
  EXPECT_EQ(csv.err, "gridclock: no line for bad isolated: it faulted\n");
  const Answer table = Bench(server, {});
  EXPECT_EQ(table.code, kFailed);
  EXPECT_THAT(table.out, HasSubstr("bad isolated: it faulted"));
  EXPECT_EQ(Bench(server, {"--json"}).code, kFailed);
}

TEST(BenchTest, AMethodThatTheDeviceLacksIsNoFailureOfAllMethods) {
  const TwoVariants server(
      WithField(absl::InvalidArgumentError("measure.method: a GPU is wanted; here is HOST_SYNC"),
                "measure.method"));
  const Answer all = Bench(server, {"--method", "all"});
  EXPECT_EQ(all.code, kOk);
  EXPECT_THAT(all.out, Not(HasSubstr("a GPU is wanted")));
  EXPECT_THAT(Bench(server, {"--csv"}).err,
              HasSubstr("isolated: a GPU is wanted; here is host_sync"));
  EXPECT_EQ(Bench(server, {"--method", "isolated"}).code, kFailed);
}

TEST(BenchTest, AllVariantsAreThoseOfTheDevicesThatTheServerHas) {
  const absl::Status failure = absl::FailedPreconditionError("it faulted");
  const Answer cpu = Bench(TwoVariants(failure, "cpu"), {"--csv"});
  EXPECT_THAT(cpu.out, HasSubstr("square,good,"));
  EXPECT_THAT(cpu.out, Not(HasSubstr("fast")));
  const Answer gpu = Bench(TwoVariants(failure, "cuda"), {"--csv"});
  EXPECT_EQ(gpu.code, kOk);
  EXPECT_THAT(gpu.out, HasSubstr("square,fast,"));
  EXPECT_THAT(gpu.out, Not(HasSubstr("good")));
  EXPECT_THAT(Bench(TwoVariants(failure, "cpu"), {"--device", "cuda"}).err,
              HasSubstr("no variant of 'square' for device 'cuda'"));
}

}  // namespace
}  // namespace gridclock::cli
