#include "server/rpc/admin.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "server/rpc/at_once.h"
#include "server/rpc/auth.h"

namespace gridclock {
namespace {

// Of one call: who asks, for what, and the word that its line in the log begins with.
struct Action {
  RpcMethod method;
  absl::string_view event;
};

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

// `serve` fills the response and says in `what` what it was asked for and did.
template <typename Request, typename Response, typename Serve>
grpc::ServerUnaryReactor* Act(Backend& backend, const Action& action,
                              grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                              grpc::ByteBuffer* response, const Serve& serve) {
  const auto act = [&](const CallMeter& meter) -> absl::Status {
    const absl::StatusOr<std::string> who = backend.authenticator.Authorize(*context, Role::kAdmin);
    if (!who.ok()) {
      // Anybody can have these, so they may be left out.
      LogAction(Log, "admin_refused", *context, meter, "", std::string(action.event), who.status());
      return who.status();
    }
    std::string what;
    absl::Status status = ServeMessage<Request, Response>(
        backend, *request, *response,
        [&](const Request& in, Response* out) { return serve(in, out, &what); });
    LogAction(LogAudit, action.event, *context, meter, *who, what, status);
    return status;
  };
  return AnswerAtOnce(backend, action.method, *context, *request, *response, act);
}

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

grpc::ServerUnaryReactor* AdminService::ListJobs(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* request,
                                                 grpc::ByteBuffer* response) {
  return Act<v1::ListJobsRequest, v1::ListJobsResponse>(
      backend_, {RpcMethod::kListJobs, "admin_list_jobs"}, context, request, response,
      [&](const v1::ListJobsRequest&, v1::ListJobsResponse* out, std::string* what) {
        for (const JobView& job : backend_.admin.Jobs()) Encode(job, out->add_jobs());
        *what = absl::StrCat(out->jobs_size(), " jobs");
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::CancelJob(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return Act<v1::CancelJobRequest, v1::CancelJobResponse>(
      backend_, {RpcMethod::kCancelJob, "admin_cancel_job"}, context, request, response,
      [&](const v1::CancelJobRequest& in, v1::CancelJobResponse* out,
          std::string* what) -> absl::Status {
        *what = absl::StrCat("job ", in.id());
        GC_ASSIGN_OR_RETURN(const JobView job, backend_.admin.Cancel(in.id()));
        absl::StrAppend(what, " of ", job.principal, ", kernel ", job.kernel, " on ", job.device);
        Encode(job, out->mutable_job());
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::DrainDevice(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* response) {
  return Act<v1::DrainDeviceRequest, v1::DrainDeviceResponse>(
      backend_, {RpcMethod::kDrainDevice, "admin_drain_device"}, context, request, response,
      [&](const v1::DrainDeviceRequest& in, v1::DrainDeviceResponse* out,
          std::string* what) -> absl::Status {
        *what = absl::StrCat(in.device(), in.allow_last() ? ", though the last" : "");
        GC_ASSIGN_OR_RETURN(const Admin::Drained done,
                            backend_.admin.Drain(in.device(), in.allow_last()));
        out->set_device(done.device);
        out->set_changed(done.changed);
        out->set_jobs(static_cast<std::uint32_t>(done.jobs));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::UndrainDevice(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Act<v1::UndrainDeviceRequest, v1::UndrainDeviceResponse>(
      backend_, {RpcMethod::kUndrainDevice, "admin_undrain_device"}, context, request, response,
      [&](const v1::UndrainDeviceRequest& in, v1::UndrainDeviceResponse* out,
          std::string* what) -> absl::Status {
        *what = in.device();
        GC_ASSIGN_OR_RETURN(const Admin::Drained done, backend_.admin.Undrain(in.device()));
        out->set_device(done.device);
        out->set_changed(done.changed);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::RestartWorker(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* request,
                                                      grpc::ByteBuffer* response) {
  return Act<v1::RestartWorkerRequest, v1::RestartWorkerResponse>(
      backend_, {RpcMethod::kRestartWorker, "admin_restart_worker"}, context, request, response,
      [&](const v1::RestartWorkerRequest& in, v1::RestartWorkerResponse* out,
          std::string* what) -> absl::Status {
        *what = absl::StrCat(in.device(), in.now() ? ", now" : "");
        GC_ASSIGN_OR_RETURN(const Admin::Restarted done,
                            backend_.admin.Restart(in.device(), in.now()));
        out->set_device(done.device);
        out->set_jobs(static_cast<std::uint32_t>(done.jobs));
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminService::Reload(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return Act<v1::ReloadRequest, v1::ReloadResponse>(
      backend_, {RpcMethod::kReload, "admin_reload"}, context, request, response,
      [&](const v1::ReloadRequest&, v1::ReloadResponse* out, std::string* what) {
        for (const Reloader::Part& part : backend_.reload()) {
          v1::ReloadResponse::Part* said = out->add_parts();
          said->set_name(part.name);
          said->set_error(std::string(part.last.message()));
          absl::StrAppend(what, what->empty() ? "" : ", ", part.name,
                          part.last.ok() ? "" : " (as before)");
        }
        return absl::OkStatus();
      });
}

}  // namespace gridclock
