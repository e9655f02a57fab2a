#include "server/rpc/admin.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "gridclock/v1/admin.pb.h"
#include "proto/types/quote.h"
#include "server/rpc/auth.h"
#include "server/rpc/now_call.h"
#include "server/rpc/stall_watch.h"

namespace gridclock {
namespace {

// What a call's line in the log begins with.
absl::string_view EventOf(RpcMethod method) {
  switch (method) {
    case RpcMethod::kListJobs:
      return "admin_list_jobs";
    case RpcMethod::kCancelJob:
      return "admin_cancel_job";
    case RpcMethod::kDrainDevice:
      return "admin_drain_device";
    case RpcMethod::kUndrainDevice:
      return "admin_undrain_device";
    case RpcMethod::kRestartWorker:
      return "admin_restart_worker";
    default:
      return "admin_reload";
  }
}

using LogFunction = void(LogLevel, absl::string_view, std::initializer_list<LogField>);

void LogAction(LogFunction& log, absl::string_view event,
               const grpc::CallbackServerContext& context, const CallMeter& meter,
               const std::string& who, const std::string& what, const absl::Status& result) {
  const std::string said = absl::StrCat(absl::StatusCodeToString(result.code()),
                                        result.ok() ? "" : ": ", result.message());
  log(result.ok() ? LogLevel::kInfo : LogLevel::kWarning, event,
      {{"who", who},
       {"peer", context.peer()},
       {"what", what},
       {"result", said},
       {"trace_id", TraceId(meter.trace())}});
}

// What a call was asked for and did, and how it ended where its answer alone says that.
struct Act {
  std::string what;
  absl::Status result;
};

// A call of who has the role.
class OperatorCall : public UnaryCall {
 protected:
  OperatorCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context)
      : UnaryCall(backend, method, context, SmallRequests(backend)), event_(EventOf(method)) {}

  // Before the call is answered.
  void LogAct(const std::string& what, const absl::Status& result) {
    LogAction(LogAudit, event_, context_, meter_, principal_, what, result);
  }

 private:
  absl::StatusOr<std::string> Authorize() override {
    auto who = backend_.authenticator.Authorize(context_, Role::kAdmin);
    if (!who.ok()) {
      // These may be left out. Anybody can have the second: it is another event, so that a flood of
      // it hides none of the first.
      const auto known = backend_.authenticator.Identify(context_);
      LogAction(Log, known.ok() ? "admin_refused" : "admin_unknown", context_, meter_,
                known.ok() ? known->name : "", std::string(event_), who.status());
    }
    return who;
  }

  const absl::string_view event_;
};

// `serve`, absl::Status(const Request&, Response*, Act*), fills the response and the act.
template <typename Request, typename Response, typename Do>
class AdminCall final : public OperatorCall {
 public:
  AdminCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
            const Do& serve)
      : OperatorCall(backend, method, context), serve_(serve) {}

 private:
  absl::Status Accept(const grpc::ByteBuffer& request) override {
    Act act;
    auto response = ServeMessage<Request, Response>(
        backend_, request, [&](const Request& in, Response* out) { return serve_(in, out, &act); });
    const absl::Status status = response.status();
    LogAct(act.what, status.ok() ? act.result : status);
    if (status.ok()) Reply(*std::move(response));
    return status;
  }

  const Do& serve_;
};

// Waits for the reloader, without a thread of gRPC.
class ReloadCall final : public OperatorCall {
 public:
  ReloadCall(Backend& backend, grpc::CallbackServerContext& context)
      : OperatorCall(backend, RpcMethod::kReload, context) {}

 private:
  absl::Status Accept(const grpc::ByteBuffer& request) override {
    absl::Status status = Ask(request);
    if (!status.ok()) LogAct("", status);
    return status;
  }

  absl::Status Ask(const grpc::ByteBuffer& request) {
    GC_RETURN_IF_ERROR(
        ParseRequest<v1::ReloadRequest>(request, {backend_.limits.control_bytes, "control_bytes"})
            .status());
    return backend_.reload(
        [self = std::static_pointer_cast<ReloadCall>(shared_from_this())](
            const absl::StatusOr<std::vector<Reloader::Part>>& parts) { self->Answer(parts); });
  }

  void Answer(const absl::StatusOr<std::vector<Reloader::Part>>& parts) {
    if (!parts.ok()) {
      LogAct("", parts.status());
      return End(parts.status());
    }
    v1::ReloadResponse response;
    Act act;
    for (const Reloader::Part& part : *parts) {
      v1::ReloadResponse::Part* said = response.add_parts();
      said->set_name(part.name);
      said->set_error(std::string(part.last.message()));
      absl::StrAppend(&act.what, act.what.empty() ? "" : ", ", part.name,
                      part.last.ok() ? "" : " (failed, the old stay)");
      act.result.Update(part.last);
    }
    LogAct(act.what, act.result);
    Reply(ToBuffer(response.SerializeAsString()));
  }
};

void Encode(const JobView& job, v1::ActiveJob* out) {
  out->set_id(job.id);
  out->set_client(job.principal);
  out->set_kernel(job.kernel);
  out->set_variant(job.variant);
  out->set_device(job.device);
  out->set_state(static_cast<v1::ActiveJob::State>(job.state));
  out->set_age_seconds(absl::ToDoubleSeconds(job.age));
  out->set_sent_seconds(absl::ToDoubleSeconds(job.sent));
  out->set_submitted(job.submitted);
  out->set_measured(job.measured);
  out->set_request_id(job.request_id);
}

}  // namespace

AdminService::AdminService(Backend& backend) {
  AddOfJobs(backend);
  AddOfDevices(backend);
  Add(RpcMethod::kReload, [&backend](grpc::CallbackServerContext* context) {
    return BeginCall<ReloadCall>(backend, *context);
  });
}

void AdminService::AddOfJobs(Backend& backend) {
  AddServed<AdminCall, v1::ListJobsRequest, v1::ListJobsResponse>(
      backend, RpcMethod::kListJobs,
      [&backend](const v1::ListJobsRequest&, v1::ListJobsResponse* out, Act* act) {
        std::vector<JobView> jobs = backend.admin.Jobs();
        std::ranges::move(backend.stalls.Sending(backend.clock.Now()), std::back_inserter(jobs));
        std::ranges::sort(jobs, {}, &JobView::id);
        for (const JobView& job : jobs) Encode(job, out->add_jobs());
        act->what = absl::StrCat(out->jobs_size(), " jobs");
        return absl::OkStatus();
      });
  AddServed<AdminCall, v1::CancelJobRequest, v1::CancelJobResponse>(
      backend, RpcMethod::kCancelJob,
      [&backend](const v1::CancelJobRequest& in, v1::CancelJobResponse* out,
                 Act* act) -> absl::Status {
        act->what = absl::StrCat("job ", in.id());
        std::optional<JobView> sent =
            backend.stalls.StopSending(in.id(), CancelledByOperator(), backend.clock.Now());
        GC_ASSIGN_OR_RETURN(const JobView job,
                            sent ? *std::move(sent) : backend.admin.Cancel(in.id()));
        absl::StrAppend(&act->what, " of ", Quote(job.principal), ", kernel ", Quote(job.kernel),
                        " on ", Quote(job.device));
        Encode(job, out->mutable_job());
        return absl::OkStatus();
      });
}

void AdminService::AddOfDevices(Backend& backend) {
  AddServed<AdminCall, v1::DrainDeviceRequest, v1::DrainDeviceResponse>(
      backend, RpcMethod::kDrainDevice,
      [&backend](const v1::DrainDeviceRequest& in, v1::DrainDeviceResponse* out,
                 Act* act) -> absl::Status {
        act->what = absl::StrCat(Quote(in.device()), in.allow_last() ? ", though the last" : "");
        GC_ASSIGN_OR_RETURN(const Admin::Drained done,
                            backend.admin.Drain(in.device(), in.allow_last()));
        out->set_device(done.device);
        out->set_changed(done.changed);
        out->set_jobs(static_cast<std::uint32_t>(done.jobs));
        return absl::OkStatus();
      });
  AddServed<AdminCall, v1::UndrainDeviceRequest, v1::UndrainDeviceResponse>(
      backend, RpcMethod::kUndrainDevice,
      [&backend](const v1::UndrainDeviceRequest& in, v1::UndrainDeviceResponse* out,
                 Act* act) -> absl::Status {
        act->what = Quote(in.device());
        GC_ASSIGN_OR_RETURN(const Admin::Drained done, backend.admin.Undrain(in.device()));
        out->set_device(done.device);
        out->set_changed(done.changed);
        return absl::OkStatus();
      });
  AddServed<AdminCall, v1::RestartWorkerRequest, v1::RestartWorkerResponse>(
      backend, RpcMethod::kRestartWorker,
      [&backend](const v1::RestartWorkerRequest& in, v1::RestartWorkerResponse* out,
                 Act* act) -> absl::Status {
        act->what = absl::StrCat(Quote(in.device()), in.now() ? ", now" : "");
        GC_ASSIGN_OR_RETURN(const Admin::Restarted done,
                            backend.admin.Restart(in.device(), in.now()));
        out->set_device(done.device);
        out->set_jobs(static_cast<std::uint32_t>(done.jobs));
        return absl::OkStatus();
      });
}

}  // namespace gridclock
