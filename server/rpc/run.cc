#include "server/rpc/run.h"

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "proto/codec/scratch.h"
#include "server/rpc/answer.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/request_lease.h"
#include "server/rpc/service.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/upload.h"

namespace gridclock {
namespace {

class RunCall final : public UnaryCall, public JobListener {
 public:
  RunCall(Backend& backend, grpc::CallbackServerContext& context)
      : UnaryCall(backend, RpcMethod::kRun, context, LargeRequests(backend)) {}

  // JobListener. The memory is taken in Accept(), which runs on.
  void OnAccepted(const Job&, const AcceptedInfo&) override {}
  void OnSamples(std::int64_t, std::span<const double>, bool) override {}
  void OnFinished(JobResult result) override {
    if (!result.outcome) return Fail(result.status, nullptr);
    Scratch<v1::RunSummary> summary;
    Summarize(active_->job(), *result.outcome, backend_.clock.Now(), &*summary);
    if (!result.status.ok()) return Fail(result.status, &*summary);
    grpc::ByteBuffer response = EncodeRunResponse(backend_, active_, *summary, *result.outcome);
    active_.reset();
    if (lease_.held()) lease_.Finish(std::make_shared<const std::string>(Flatten(response)));
    Reply(response);
  }

 private:
  absl::StatusOr<std::string> Authorize() override {
    return backend_.authenticator.Authorize(context_, Role::kRun);
  }

  absl::Status Accept(const grpc::ByteBuffer& request) override {
    if (const absl::Status status = Start(request); !status.ok()) Fail(status, nullptr);
    return absl::OkStatus();
  }

  // Submit() may be about to say which job there is: one of the two sees what the other wrote.
  void Abandon() override {
    abandoned_ = true;
    if (job_ != 0) backend_.scheduler.Cancel(job_, CancelReason(context_, meter_.age()));
  }

  // From bytes to a job that runs. OK also if an earlier call had the answer.
  absl::Status Start(const grpc::ByteBuffer& buffer) {
    const MessageView message(buffer);
    auto decoded = DecodeRunRequest(message.slices(), RequestLimitsOf(backend_.limits));
    if (decoded.ok()) request_id_ = decoded->request.request_id;
    GC_ASSIGN_OR_RETURN(const DecodedRun run,
                        EnterRequest(context_, backend_, meter_, principal_, std::move(decoded)));
    GC_ASSIGN_OR_RETURN(const RequestIds::Answer answer, LeaseRequestId(backend_, run, lease_));
    if (answer != nullptr) {
      const grpc::Slice bytes = Borrow(std::as_bytes(std::span(*answer)), answer);
      Reply(grpc::ByteBuffer(&bytes, 1));
      return absl::OkStatus();
    }
    GC_ASSIGN_OR_RETURN(Job job, AdmitRequest(backend_, run.request));
    GC_ASSIGN_OR_RETURN(job_, backend_.scheduler.Submit(std::move(job), Self(),
                                                        /*wait_for_memory=*/false));
    if (abandoned_) backend_.scheduler.Cancel(job_, CancelReason(context_, meter_.age()));
    Launch(run, message.slices());
    return absl::OkStatus();
  }

  // A job that was cancelled or too late in the meantime has no memory, and OnFinished says so.
  void Launch(const DecodedRun& run, Slices message) {
    active_ = backend_.scheduler.Active(job_);
    if (active_ == nullptr) return;
    CopyInline(backend_, run, message, active_->job());
    backend_.scheduler.Start(job_);
  }

  void Fail(const absl::Status& status, const v1::RunSummary* summary) {
    lease_.Release();
    End(status, {.client = principal_, .request_id = request_id_, .job = job_}, summary);
  }

  std::shared_ptr<RunCall> Self() { return std::static_pointer_cast<RunCall>(shared_from_this()); }

  std::string request_id_;
  RequestLease lease_;
  std::atomic<JobId> job_ = 0;  // A job may be over before Submit() has returned.
  std::atomic<bool> abandoned_ = false;
  // Kept with the scheduler until the answer is made, then with the slices on their way.
  std::shared_ptr<const ActiveJob> active_;
};

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServeRun(
    Backend& backend, grpc::CallbackServerContext* context) {
  return BeginCall<RunCall>(backend, *context);
}

}  // namespace gridclock
