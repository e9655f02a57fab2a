#include "client/cpp/client.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cpp/channels.h"
#include "client/cpp/health.h"
#include "client/cpp/messages.h"
#include "client/cpp/task.h"
#include "gridclock/v1/admin.grpc.pb.h"
#include "gridclock/v1/kernels.grpc.pb.h"
#include "gridclock/v1/modules.grpc.pb.h"
#include "gridclock/v1/system.grpc.pb.h"
#include "proto/codec/values.h"

namespace gridclock {
namespace {

// How long a call may take, and whether doing it twice is as doing it once.
struct Manner {
  absl::Duration timeout;
  bool repeatable;
};
constexpr Manner kSmall = {absl::Seconds(10), true};
constexpr Manner kOnce = {absl::Seconds(10), false};
// One that may wait for compiles of others before it.
constexpr Manner kCompile = {absl::Seconds(60), true};
constexpr absl::Duration kConnectTimeout = absl::Milliseconds(250);  // Of a look at the health.

// Runs `attempt` until it succeeds or its failure is final. For small calls that wait anyway.
absl::Status WithRetries(const RetryOptions& options, const Manner& manner,
                         const std::function<absl::Status(absl::Time deadline)>& attempt) {
  absl::BitGen random;
  const absl::Time deadline = absl::Now() + manner.timeout;
  for (int attempts = 1;; ++attempts) {
    const absl::Status status = attempt(deadline);
    if (status.ok()) return status;
    // It may have been done all the same, unless the server says when to try again.
    if (!manner.repeatable && !DetailsOf(status).retry_after.has_value()) return status;
    const auto wait =
        NextTry(options, status, attempts, deadline - absl::Now(), absl::Uniform(random, 0.0, 1.0));
    if (!wait.has_value()) return status;
    absl::SleepFor(*wait);
  }
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(const ClientOptions& client_options)
      : options(client_options),
        control_channel(MakeChannel(options, 1 << 20)),
        bulk_channel(MakeChannel(options, options.stream_window_bytes)),
        control(control_channel),
        bulk(bulk_channel),
        kernels(v1::KernelService::NewStub(control_channel)),
        modules(v1::ModuleService::NewStub(control_channel)),
        system(v1::SystemService::NewStub(control_channel)),
        admin(v1::AdminService::NewStub(control_channel)) {}

  // One small call by a generated stub's method.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request, Manner manner = kSmall) {
    manner.timeout = options.timeout.value_or(manner.timeout);
    Response response;
    GC_RETURN_IF_ERROR(WithRetries(options.retry, manner, [&](absl::Time deadline) {
      grpc::ClientContext rpc;
      Prepare(options, deadline, &rpc);
      return ToStatus((stub.*method)(&rpc, request, &response));
    }));
    return response;
  }

  CallSite site() { return {options, control, bulk, chunk_bytes}; }

  void Begin() {
    const std::lock_guard<std::mutex> lock(mutex);
    ++running;
  }
  void End() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--running == 0) idle.notify_all();
  }
  void WaitUntilIdle() {
    std::unique_lock<std::mutex> lock(mutex);
    idle.wait(lock, [this] { return running == 0; });
  }

  const ClientOptions options;
  const std::shared_ptr<grpc::Channel> control_channel, bulk_channel;
  grpc::GenericStub control, bulk;
  std::atomic<std::uint64_t> chunk_bytes = kChunkBytes;
  const std::unique_ptr<v1::KernelService::Stub> kernels;
  const std::unique_ptr<v1::ModuleService::Stub> modules;
  const std::unique_ptr<v1::SystemService::Stub> system;
  const std::unique_ptr<v1::AdminService::Stub> admin;

 private:
  std::mutex mutex;
  std::condition_variable idle;
  int running = 0;
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() {
  impl_->WaitUntilIdle();
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  GC_RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(options)));
}

absl::StatusOr<std::vector<KernelSpec>> Client::ListKernels(bool include_diagnostic) const {
  v1::ListKernelsRequest request;
  request.set_include_diagnostic(include_diagnostic);
  GC_ASSIGN_OR_RETURN(const v1::ListKernelsResponse response,
                      impl_->Call(*impl_->kernels, &v1::KernelService::Stub::ListKernels, request));
  std::vector<KernelSpec> out;
  for (const v1::KernelSpec& message : response.kernels()) {
    GC_ASSIGN_OR_RETURN(out.emplace_back(), Decode(message));
  }
  return out;
}

absl::StatusOr<KernelSpec> Client::GetKernel(const std::string& name) const {
  v1::GetKernelRequest request;
  request.set_name(name);
  GC_ASSIGN_OR_RETURN(const v1::KernelSpec response,
                      impl_->Call(*impl_->kernels, &v1::KernelService::Stub::GetKernel, request));
  return Decode(response);
}

absl::StatusOr<std::vector<v1::Device>> Client::ListDevices() const {
  GC_ASSIGN_OR_RETURN(
      const v1::ListDevicesResponse response,
      impl_->Call(*impl_->system, &v1::SystemService::Stub::ListDevices, v1::ListDevicesRequest()));
  return std::vector<v1::Device>(response.devices().begin(), response.devices().end());
}

absl::StatusOr<v1::ServerInfo> Client::GetServerInfo() const {
  return impl_->Call(*impl_->system, &v1::SystemService::Stub::GetServerInfo,
                     v1::GetServerInfoRequest());
}

absl::StatusOr<v1::Module> Client::Compile(const v1::CompileRequest& request) const {
  return impl_->Call(*impl_->modules, &v1::ModuleService::Stub::Compile, request, kCompile);
}

absl::StatusOr<v1::Module> Client::Load(const v1::LoadRequest& request) const {
  return impl_->Call(*impl_->modules, &v1::ModuleService::Stub::Load, request, kCompile);
}

absl::StatusOr<v1::Module> Client::GetModule(const v1::GetModuleRequest& request) const {
  return impl_->Call(*impl_->modules, &v1::ModuleService::Stub::Get, request, kCompile);
}

absl::StatusOr<std::vector<v1::Module>> Client::ListModules() const {
  GC_ASSIGN_OR_RETURN(
      const v1::ListModulesResponse response,
      impl_->Call(*impl_->modules, &v1::ModuleService::Stub::List, v1::ListModulesRequest()));
  return std::vector<v1::Module>(response.modules().begin(), response.modules().end());
}

absl::Status Client::DeleteModule(const std::string& id) const {
  v1::DeleteModuleRequest request;
  request.set_id(id);
  return impl_->Call(*impl_->modules, &v1::ModuleService::Stub::Delete, request, kOnce).status();
}

absl::StatusOr<std::vector<v1::ActiveJob>> Client::ListJobs() const {
  GC_ASSIGN_OR_RETURN(
      const v1::ListJobsResponse response,
      impl_->Call(*impl_->admin, &v1::AdminService::Stub::ListJobs, v1::ListJobsRequest()));
  return std::vector<v1::ActiveJob>(response.jobs().begin(), response.jobs().end());
}

absl::StatusOr<v1::ActiveJob> Client::CancelJob(std::uint64_t id) const {
  v1::CancelJobRequest request;
  request.set_id(id);
  GC_ASSIGN_OR_RETURN(
      const v1::CancelJobResponse response,
      impl_->Call(*impl_->admin, &v1::AdminService::Stub::CancelJob, request, kOnce));
  return response.job();
}

absl::StatusOr<v1::DrainDeviceResponse> Client::DrainDevice(
    const v1::DrainDeviceRequest& request) const {
  return impl_->Call(*impl_->admin, &v1::AdminService::Stub::DrainDevice, request);
}

absl::StatusOr<v1::UndrainDeviceResponse> Client::UndrainDevice(const std::string& device) const {
  v1::UndrainDeviceRequest request;
  request.set_device(device);
  return impl_->Call(*impl_->admin, &v1::AdminService::Stub::UndrainDevice, request);
}

absl::StatusOr<v1::RestartWorkerResponse> Client::RestartWorker(
    const v1::RestartWorkerRequest& request) const {
  return impl_->Call(*impl_->admin, &v1::AdminService::Stub::RestartWorker, request, kOnce);
}

absl::StatusOr<v1::ReloadResponse> Client::Reload() const {
  return impl_->Call(*impl_->admin, &v1::AdminService::Stub::Reload, v1::ReloadRequest());
}

absl::StatusOr<absl::Duration> Client::Ping() const {
  grpc::ClientContext rpc;
  const absl::Time start = absl::Now();
  Prepare(impl_->options, start + impl_->options.timeout.value_or(kSmall.timeout), &rpc);
  GC_RETURN_IF_ERROR(HealthCheck(*impl_->control_channel, "", &rpc).status());
  return absl::Now() - start;
}

absl::Status Client::CheckHealth(const std::string& service, absl::Duration timeout) const {
  const absl::Time now = absl::Now();
  // gRPC connects while somebody waits for it: between calls that fail at once a new server would
  // be seen by gRPC's own look every 5 s alone.
  impl_->control_channel->WaitForConnected(
      absl::ToChronoTime(now + std::min(timeout, kConnectTimeout)));
  grpc::ClientContext rpc;
  Prepare(impl_->options, now + timeout, &rpc);
  GC_ASSIGN_OR_RETURN(const HealthState state, HealthCheck(*impl_->control_channel, service, &rpc));
  if (state == HealthState::kServing) return absl::OkStatus();
  return WithReason(
      absl::UnavailableError(service.empty()
                                 ? "no device takes calls (each is drained, starting, dead or "
                                   "quarantined), or the server starts or ends"
                                 : absl::StrCat(service, " takes no calls now")),
      "NOT_SERVING");
}

RunHandle Client::RunAsync(const RunCall& call, RunEvents events,
                           std::function<void(absl::StatusOr<RunResult>)> done) const {
  impl_->Begin();
  const auto task = std::make_shared<RunHandle::Task>(
      impl_->site(), call, std::move(events),
      [impl = impl_.get(), done = std::move(done)](absl::StatusOr<RunResult> result) {
        done(std::move(result));
        impl->End();
      });
  task->Start();
  return RunHandle(task);
}

absl::StatusOr<RunResult> Client::Run(const RunCall& call, const RunEvents& events) const {
  absl::StatusOr<RunResult> result;
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  RunAsync(call, events, [&](absl::StatusOr<RunResult> got) {
    const std::lock_guard<std::mutex> lock(mutex);
    result = std::move(got);
    ended = true;
    changed.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return ended; });
  return result;
}

void RunHandle::Cancel() const {
  if (const auto task = task_.lock()) task->Cancel();
}

}  // namespace gridclock
