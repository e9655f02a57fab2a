#include "server/rpc/run.h"

#include <atomic>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/codec/scratch.h"
#include "server/rpc/answer.h"
#include "server/rpc/auth.h"
#include "server/rpc/buffer.h"
#include "server/rpc/call.h"
#include "server/rpc/request_lease.h"
#include "server/rpc/stall_watch.h"
#include "server/rpc/status.h"
#include "server/rpc/upload.h"

namespace gridclock {
namespace {

constexpr std::size_t kLargeAnswer = 16 * 1024;

class RunCall final : public grpc::ServerUnaryReactor,
                      public JobListener,
                      public StallWatch::Stream,
                      public std::enable_shared_from_this<RunCall> {
 public:
  RunCall(Backend& backend, grpc::CallbackServerContext& context, grpc::ByteBuffer& response)
      : backend_(backend),
        context_(context),
        response_(response),
        meter_(backend, RpcMethod::kRun, context) {}

  void Begin(const grpc::ByteBuffer& request) {
    self_ = shared_from_this();
    received_ = request.Length();
    if (const absl::Status status = Accept(request); !status.ok()) End(status, nullptr);
  }

  // JobListener. The memory is taken in Accept(), which runs on.
  void OnAccepted(const Job&, const AcceptedInfo&) override {}
  void OnSamples(std::int64_t, std::span<const double>, bool) override {}
  void OnFinished(JobResult result) override {
    if (!result.outcome) return End(result.status, nullptr);
    Scratch<v1::RunSummary> summary;
    Summarize(active_->job(), *result.outcome, backend_.clock.Now(), &*summary);
    if (!result.status.ok()) return End(result.status, &*summary);
    response_ = EncodeRunResponse(backend_, active_, *summary, *result.outcome);
    active_.reset();
    if (lease_.held()) {
      lease_.Finish(std::make_shared<const std::string>(Flatten(response_)));
    }
    Answer();
  }

  // grpc::ServerUnaryReactor. Called after Begin() has returned, so job_ is set if there is a job.
  void OnCancel() override {
    if (job_ != 0) backend_.scheduler.Cancel(job_, CancelReason(context_));
  }
  void OnDone() override {
    if (watched_) NoteDone();
    self_.reset();
  }

  void CheckStall(absl::Time now) override {
    // The context lives until OnDone is over.
    const MutexLock lock(mutex_);
    if (done_ || now < give_up_) return;
    give_up_ = absl::InfiniteFuture();
    context_.TryCancel();
  }

 private:
  // OnDone and OnCancel wait for nothing, so gRPC need not wake a thread of its own for them; but
  // under CheckStall's lock OnDone must not be called.
  bool InternalInlineable() override { return !watched_; }

  void NoteDone() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    done_ = true;
  }

  void Answer() {
    if (response_.Length() > kLargeAnswer) WatchReader();
    End(absl::OkStatus(), nullptr);
  }

  // A large answer holds its memory, in the arena as a rule, until the client has read it.
  void WatchReader() ABSL_LOCKS_EXCLUDED(mutex_) {
    watched_ = true;
    {
      const MutexLock lock(mutex_);
      give_up_ = backend_.clock.Now() + absl::Seconds(backend_.limits.stream_stall_seconds);
    }
    backend_.stalls.Add(weak_from_this());
  }

  // From bytes to a job that runs. OK also if an earlier call had the answer.
  absl::Status Accept(const grpc::ByteBuffer& buffer) {
    GC_ASSIGN_OR_RETURN(principal_, backend_.authenticator.Authorize(context_, Role::kRun));
    // Its message may be gone with it.
    if (context_.IsCancelled()) return CancelReason(context_);
    const MessageView message(buffer);
    GC_ASSIGN_OR_RETURN(DecodedRun run,
                        DecodeRunRequest(message.slices(), RequestLimitsOf(backend_.limits)));
    GC_RETURN_IF_ERROR(CheckSubmit(context_, backend_, run.request));
    run.request.principal = principal_;
    request_id_ = run.request.request_id;
    GC_RETURN_IF_ERROR(Stamp(context_, backend_, meter_, &run.request));
    GC_ASSIGN_OR_RETURN(Job job, AdmitRequest(backend_, run.request));
    GC_ASSIGN_OR_RETURN(const RequestIds::Answer answer, LeaseRequestId(backend_, run, lease_));
    if (answer != nullptr) {
      const grpc::Slice bytes = Borrow(std::as_bytes(std::span(*answer)), answer);
      response_ = grpc::ByteBuffer(&bytes, 1);
      Answer();
      return absl::OkStatus();
    }
    GC_ASSIGN_OR_RETURN(job_, backend_.scheduler.Submit(std::move(job), shared_from_this(),
                                                        /*wait_for_memory=*/false));
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

  void End(const absl::Status& status, const v1::RunSummary* summary) {
    lease_.Release();
    meter_.Bytes(received_, response_.Length());
    meter_.Finish(status, {.client = principal_, .request_id = request_id_, .job = job_});
    Finish(ToGrpc(status, summary));
  }

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  grpc::ByteBuffer& response_;
  CallMeter meter_;
  std::string principal_, request_id_;
  std::uint64_t received_ = 0;
  RequestLease lease_;
  std::atomic<JobId> job_ = 0;  // A job may be over before Submit() has returned.
  // Kept with the scheduler until the answer is made, then with the slices on their way.
  std::shared_ptr<const ActiveJob> active_;
  std::atomic<bool> watched_{false};  // Set before gRPC may call OnDone.
  Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // gRPC knows this call by its bare address until OnDone; the scheduler shares it.
  std::shared_ptr<RunCall> self_;
};

}  // namespace

grpc::ServerUnaryReactor* ServeRun(Backend& backend, grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  auto call = std::make_shared<RunCall>(backend, *context, *response);
  call->Begin(*request);
  return call.get();
}

}  // namespace gridclock
