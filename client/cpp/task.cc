#include "client/cpp/task.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "client/cpp/messages.h"

namespace gridclock {
namespace {

std::string NewRequestId(absl::BitGen& random) {
  return absl::StrFormat("%016x%016x", absl::Uniform<std::uint64_t>(random),
                         absl::Uniform<std::uint64_t>(random));
}

bool WantsStream(const RunCall& call, const RunEvents& events) {
  if (call.way != Way::kAuto) return call.way == Way::kStream;
  if (events.accepted || events.samples || events.moved) return true;
  return InputBytes(call) > kInlineLimit;  // What comes back is seldom more than what went in.
}

bool IsTooLargeForUnary(const absl::Status& status) {
  return DetailsOf(status).reason == "TOO_LARGE" || DetailsOf(status).reason == "USE_STREAM";
}

}  // namespace

void Prepare(const ClientOptions& options, absl::Time deadline, grpc::ClientContext* rpc) {
  if (deadline != absl::InfiniteFuture()) rpc->set_deadline(absl::ToChronoTime(deadline));
  if (!options.token.empty()) rpc->AddMetadata("authorization", "Bearer " + options.token);
}

RunHandle::Task::Task(const CallSite& site, const RunCall& call, RunEvents events, AttemptDone done)
    : site_(site),
      call_(call),
      events_(std::move(events)),
      done_(std::move(done)),
      deadline_(call.timeout == absl::InfiniteDuration() ? absl::InfiniteFuture()
                                                         : absl::Now() + call.timeout),
      stream_(WantsStream(call, events_)),
      request_id_(call.request_id) {
  if (request_id_.empty() && site.options.retry.max_attempts > 1) {
    request_id_ = NewRequestId(random_);
  }
}

void RunHandle::Task::Start() {
  absl::Status status = CheckInputs(call_);
  if (status.ok()) return Attempt();
  // Not on this thread: its owner may hold a lock that `done` takes.
  WaitThen(absl::ZeroDuration(),
           [this, status = std::move(status)](bool /*wanted*/) { done_(status); });
}

void RunHandle::Task::Cancel() {
  std::shared_ptr<grpc::ClientContext> rpc;
  {
    MutexLock lock(mutex_);
    cancelled_ = true;
    rpc = rpc_.lock();
    if (alarm_ != nullptr) alarm_->Cancel();  // Calls back soon, on a thread of gRPC.
  }
  if (rpc != nullptr) rpc->TryCancel();
}

std::shared_ptr<grpc::ClientContext> RunHandle::Task::NewRpc() {
  auto rpc = std::make_shared<grpc::ClientContext>();
  Prepare(site_.options, deadline_, rpc.get());
  MutexLock lock(mutex_);
  rpc_ = rpc;
  if (cancelled_) rpc->TryCancel();  // gRPC keeps it for the call that has not begun.
  return rpc;
}

void RunHandle::Task::Attempt() {
  ++attempts_;
  std::shared_ptr<grpc::ClientContext> rpc = NewRpc();
  chunk_bytes_ = site_.chunk_bytes;
  const AttemptContext context{call_, events_, request_id_, chunk_bytes_, rpc};
  AttemptDone ended = [self = shared_from_this()](absl::StatusOr<RunResult> result) {
    self->Ended(std::move(result));
  };
  if (stream_) {
    StartStream(site_.bulk, context, std::move(ended));
  } else {
    StartUnary(site_.control, context, std::move(ended));
  }
}

void RunHandle::Task::Ended(absl::StatusOr<RunResult> result) {
  if (result.ok()) {
    result->attempts = attempts_;
    return done_(std::move(result));
  }
  if (call_.way == Way::kAuto && !stream_ && IsTooLargeForUnary(result.status())) {
    stream_ = true;
    return Attempt();
  }
  if (stream_ && MayShorten(result.status())) return Attempt();
  absl::Duration wait;
  if (!MayRetry(result.status(), &wait)) return done_(std::move(result));
  if (events_.retry) events_.retry(result.status(), wait);
  WaitThenTry(std::move(result).status(), wait);
}

void RunHandle::Task::WaitThenTry(absl::Status failure, absl::Duration wait) {
  WaitThen(wait, [this, failure = std::move(failure)](bool wanted) {
    if (wanted) return Attempt();
    done_(absl::CancelledError(
        absl::StrCat("cancelled before another try; the last: ", failure.message())));
  });
}

void RunHandle::Task::WaitThen(absl::Duration wait, std::function<void(bool wanted)> next) {
  MutexLock lock(mutex_);
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(absl::ToChronoTime(absl::Now() + (cancelled_ ? absl::ZeroDuration() : wait)),
              [self = shared_from_this(), next = std::move(next)](bool) { next(self->EndWait()); });
}

bool RunHandle::Task::EndWait() {
  std::unique_ptr<grpc::Alarm> rung;  // Ends outside the lock.
  MutexLock lock(mutex_);
  rung = std::move(alarm_);
  return !cancelled_;
}

bool RunHandle::Task::MayShorten(const absl::Status& failure) {
  const std::optional<std::uint64_t> next = ShorterChunk(failure, chunk_bytes_);
  if (!next.has_value()) return false;
  std::uint64_t known = site_.chunk_bytes;
  while (known > *next && !site_.chunk_bytes.compare_exchange_weak(known, *next)) {
  }
  return true;
}

bool RunHandle::Task::MayRetry(const absl::Status& failure, absl::Duration* wait) {
  {
    MutexLock lock(mutex_);
    if (cancelled_) return false;
  }
  // The answer of a try whose connection broke is gone, and a kernel has no effect but its outputs.
  if (attempts_ > 1 && call_.request_id.empty() && absl::IsAlreadyExists(failure) &&
      DetailsOf(failure).reason == "DONE" && attempts_ < site_.options.retry.max_attempts) {
    request_id_ = NewRequestId(random_);
    *wait = absl::ZeroDuration();
    return true;
  }
  const auto next = NextTry(site_.options.retry, failure, attempts_, deadline_ - absl::Now(),
                            absl::Uniform(random_, 0.0, 1.0));
  if (!next.has_value()) return false;
  *wait = *next;
  return true;
}

}  // namespace gridclock
