#include "server/rpc/call.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include <sys/random.h>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "proto/codec/values.h"
#include "server/core/admission.h"
#include "server/rpc/auth.h"

namespace gridclock {
namespace {

// So many samples go with a summary at most; a StreamRun has sent them before.
constexpr std::uint64_t kMaxSamples = 384 * 1024;

// An answer must fit the 4 MiB that gRPC's clients receive by default.
constexpr std::uint64_t kMaxAnswer = 4 * 1024 * 1024;
constexpr std::uint64_t kAnswerText = 64 * 1024;  // Of it, what is neither sample nor tensor.

constexpr char kTraceParent[] = "traceparent";

// One that came twice is none.
TraceContext TraceOf(const grpc::CallbackServerContext& context) {
  thread_local absl::InsecureBitGen random;
  const auto [begin, end] = context.client_metadata().equal_range(kTraceParent);
  std::optional<TraceContext> caller;
  if (begin != end && std::next(begin) == end) {
    caller = ParseTraceParent(absl::string_view(begin->second.data(), begin->second.size()));
  }
  return ContinueTrace(caller, random);
}

std::uint64_t SamplesThatFit(const Job& job) {
  std::uint64_t left = kMaxAnswer - kAnswerText;
  for (const JobOutput& output : job.outputs) {
    if (output.sink == SinkKind::kInline) left -= std::min(left, WireBytes(output.value));
  }
  return std::min(kMaxSamples, left / sizeof(double));
}

}  // namespace

CallMeter::CallMeter(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context)
    : backend_(backend),
      of_connection_(CallsOfConnections(), context.peer(), context.client_metadata().size()),
      place_(method == RpcMethod::kWatchHealth ? nullptr : &backend.calls),  // It never ends.
      method_(method),
      started_(backend.clock.Now()),
      trace_(TraceOf(context)) {
  if (context.client_metadata().count(kTraceParent) != 0) {
    context.AddInitialMetadata(kTraceParent, TraceParent(trace_));
  }
  backend.observer.OnRpcStarted(method);
}

void CallMeter::Finish(const absl::Status& status, const CallSubject& subject) {
  backend_.observer.OnRpcFinished(method_, status, backend_.clock.Now() - started_);
  if (absl::IsInternal(status) || absl::IsUnknown(status)) {
    LogFailedCall(method_, status, subject, trace_);
  }
}

absl::Duration TimeUntil(gpr_timespec deadline) {
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0) {
    return absl::InfiniteDuration();
  }
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
  return absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

void LogFailedCall(RpcMethod method, const absl::Status& status, const CallSubject& subject,
                   const TraceContext& trace) {
  const RpcMethodName name = NameOf(method);
  Log(LogLevel::kError, "call_failed",
      {{"method", absl::StrCat(name.service, "/", name.method)},
       {"code", absl::StatusCodeToString(status.code())},
       {"reason", DetailsOf(status).reason},
       {"client", std::string(subject.client)},
       {"request_id", std::string(subject.request_id)},
       {"job", absl::StrCat(subject.job)},
       {"trace_id", TraceId(trace)}});
}

absl::Time DeadlineOf(const grpc::CallbackServerContext& context, absl::Time now) {
  return now + TimeUntil(context.raw_deadline());
}

absl::Status SubmitOffStatus() {
  return WithReason(
      absl::FailedPreconditionError(
          "this server takes no code: it runs without --allow-submit, which its operator may set"),
      "SUBMIT_OFF");
}

namespace {

// What the server knows of a request besides its text.
absl::Status Stamp(grpc::CallbackServerContext& context, const Backend& backend,
                   const CallMeter& meter, JobRequest* request) {
  const absl::Time now = backend.clock.Now();
  const Limits& limits = backend.limits;
  request->arrived = meter.started();
  request->trace = meter.trace();
  request->deadline = DeadlineOf(context, now);
  if (request->deadline <= now) {
    return absl::DeadlineExceededError("the deadline had passed when the request was here");
  }
  if (request->deadline == absl::InfiniteFuture()) {
    context.AddInitialMetadata("gridclock-queue-timeout-seconds",
                               absl::StrCat(limits.queue_seconds));
    context.AddInitialMetadata("gridclock-kernel-timeout-seconds",
                               absl::StrCat(limits.kernel_seconds));
  }
  return absl::OkStatus();
}

// OK unless the request has a program that this server or this caller must not run.
absl::Status CheckSubmit(const grpc::CallbackServerContext& context, const Backend& backend,
                         const JobRequest& request) {
  if (!request.program) return absl::OkStatus();
  if (!backend.modules) return SubmitOffStatus();
  return backend.authenticator.Authorize(context, Role::kSubmit).status();
}

absl::Status EnterDecoded(grpc::CallbackServerContext& context, const Backend& backend,
                          const CallMeter& meter, const std::string& principal,
                          JobRequest* request) {
  GC_RETURN_IF_ERROR(CheckSubmit(context, backend, *request));
  request->principal = principal;
  return Stamp(context, backend, meter, request);
}

}  // namespace

absl::StatusOr<DecodedRun> EnterRequest(grpc::CallbackServerContext& context,
                                        const Backend& backend, const CallMeter& meter,
                                        const std::string& principal,
                                        absl::StatusOr<DecodedRun> decoded) {
  absl::Status status = decoded.status();
  if (status.ok()) status = EnterDecoded(context, backend, meter, principal, &decoded->request);
  if (status.ok()) return decoded;
  if (DetailsOf(status).reason != "UNPARSABLE") {
    backend.job_observer.OnRejected(decoded.ok() ? decoded->request.device : "", status);
  }
  return status;
}

namespace {

// Seeds that nobody can know or derive from one another.
absl::StatusOr<Job> WithSecrets(Job job) {
  std::vector<std::uint64_t>& secrets = job.check->secrets;
  secrets.resize(static_cast<std::size_t>(job.check->most_launches) + 1);
  const auto bytes = std::as_writable_bytes(std::span(secrets));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = getrandom(bytes.data() + at, bytes.size() - at, 0);
    if (got < 0 && errno != EINTR) return ErrnoToStatus(errno, "random numbers of the system");
    if (got > 0) at += static_cast<std::size_t>(got);
  }
  return job;
}

absl::StatusOr<Job> AdmitAny(const Backend& backend, const JobRequest& request) {
  const auto depth = [&](absl::string_view device) { return backend.scheduler.depth(device); };
  std::shared_ptr<const JobProgram> program, reference;
  if (request.program) {
    GC_ASSIGN_OR_RETURN(program, backend.modules->programs.Find(request));
    GC_ASSIGN_OR_RETURN(reference, backend.modules->programs.FindReference(request));
  }
  return Admit(request, backend.table, backend.limits, depth, std::move(program),
               std::move(reference));
}

}  // namespace

absl::StatusOr<Job> AdmitRequest(const Backend& backend, const JobRequest& request) {
  auto job = AdmitAny(backend, request);
  if (job.ok() && job->check) job = WithSecrets(*std::move(job));
  if (!job.ok()) backend.job_observer.OnRejected(request.device, job.status());
  return job;
}

namespace {

absl::StatusOr<RequestIds::Answer> BeginLease(const Backend& backend, const DecodedRun& run,
                                              RequestLease& lease) {
  const std::string& id = run.request.request_id;
  GC_RETURN_IF_ERROR(CheckRequestId(id));
  GC_ASSIGN_OR_RETURN(RequestIds::Answer answer,
                      lease.Begin(backend.request_ids, run.request.principal, id, run.content));
  // The answer of a Run has no form in a stream.
  if (run.request.streamed && answer != nullptr) return RequestIds::NotKept(id);
  return answer;
}

}  // namespace

absl::StatusOr<RequestIds::Answer> LeaseRequestId(const Backend& backend, const DecodedRun& run,
                                                  RequestLease& lease) {
  auto answer = BeginLease(backend, run, lease);
  if (!answer.ok()) backend.job_observer.OnRejected(run.request.device, answer.status());
  return answer;
}

void Summarize(const Job& job, const Outcome& outcome, absl::Time now, v1::RunSummary* out) {
  EncodeSummary(job, outcome, /*with_samples=*/true, out);
  if (static_cast<std::uint64_t>(out->timing().samples_ns_size()) > SamplesThatFit(job)) {
    out->mutable_timing()->clear_samples_ns();
  }
  out->set_unix_time_ns(absl::ToUnixNanos(absl::Now() - (now - job.arrived)));
}

absl::Status TooSlow(absl::Duration limit) {
  return WithReason(absl::DeadlineExceededError(
                        absl::StrCat("the client was too slow to send: want its request within ",
                                     absl::FormatDuration(limit))),
                    "STREAM_STALLED");
}

absl::Status CheckMetadata(const grpc::CallbackServerContext& context, const Limits& limits) {
  constexpr std::size_t kBesideEach = 32;  // As HTTP/2 counts (RFC 9113, section 6.5.2).
  std::size_t bytes = 0;
  for (const auto& [name, value] : context.client_metadata()) {
    bytes += name.size() + value.size() + kBesideEach;
  }
  const auto most = static_cast<std::size_t>(limits.metadata_bytes);
  if (bytes <= most) return absl::OkStatus();
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat("the call's metadata counts ", bytes,
                                                " bytes; the limit metadata_bytes is ", most)),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", "metadata_bytes"}, {"value", absl::StrCat(most)}}});
}

bool IsOfDeadline(absl::Duration left, absl::Duration age) {
  constexpr absl::Duration kOnItsWay = absl::Milliseconds(20);
  return left <= kOnItsWay + age / 100;
}

absl::Status CancelReason(const grpc::CallbackServerContext& context, absl::Duration age) {
  if (IsOfDeadline(TimeUntil(context.raw_deadline()), age)) {
    return absl::DeadlineExceededError("the call's deadline passed");
  }
  return absl::CancelledError("cancelled by the client");
}

}  // namespace gridclock
