// What every call has: its time, its deadline, and an observer that hears of its end.
#ifndef GRIDCLOCK_SERVER_RPC_CALL_H_
#define GRIDCLOCK_SERVER_RPC_CALL_H_

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/types/job.h"
#include "proto/types/trace.h"
#include "server/rpc/backend.h"
#include "server/rpc/calls_in_flight.h"
#include "server/rpc/connection_calls.h"
#include "server/rpc/request_lease.h"

namespace gridclock {

// Whose call it was, as far as that was known when it ended. Of any bytes: the log escapes them.
struct CallSubject {
  absl::string_view client = "", request_id = "";
  JobId job = 0;
};

// Lives as long as the call. Tells the observer of its start, and of its end once. Gives the call
// its place in its caller's trace, and tells a caller that sent the metadata `traceparent`, in the
// initial metadata.
class CallMeter {
 public:
  CallMeter(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context);
  absl::Time started() const { return started_; }
  absl::Duration age() const { return backend_.clock.Now() - started_; }
  const TraceContext& trace() const { return trace_; }
  // A fault of ours is a line in the log.
  void Finish(const absl::Status& status, const CallSubject& subject = {});
  void Bytes(std::uint64_t received, std::uint64_t sent) {
    backend_.observer.OnRpcBytes(method_, received, sent);
  }

 private:
  Backend& backend_;
  const ConnectionCalls::Place of_connection_;
  const CallsInFlight::Place place_;
  const RpcMethod method_;
  const absl::Time started_;
  const TraceContext trace_;
};

// The line of the log about a call that ended by a fault of ours.
void LogFailedCall(RpcMethod method, const absl::Status& status, const CallSubject& subject,
                   const TraceContext& trace);

// INFINITE where a client set none. In nanoseconds, as gRPC's own time points are, a deadline that
// is centuries away would have passed.
absl::Duration TimeUntil(gpr_timespec deadline);

// The client's deadline on our monotonic clock. INFINITE where it set none.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context, absl::Time now);

// A request as it was decoded, if this caller may make it: filled with what the server knows of it
// besides its text; a call without a deadline is told in initial metadata what times bound it.
// DEADLINE_EXCEEDED if it came too late. The observer of jobs hears of a refusal, here and below,
// but not of what could not be read.
absl::StatusOr<DecodedRun> EnterRequest(grpc::CallbackServerContext& context,
                                        const Backend& backend, const CallMeter& meter,
                                        const std::string& principal,
                                        absl::StatusOr<DecodedRun> decoded);

// What calls of a server without --allow-submit hear.
absl::Status SubmitOffStatus();

// RESOURCE_EXHAUSTED (TOO_LARGE) where the call has more metadata than metadata_bytes. gRPC holds a
// client to it from the client's word on that it has heard of the limit, which it need not say.
absl::Status CheckMetadata(const grpc::CallbackServerContext& context, const Limits& limits);

// The request of a job, admitted for the least loaded device.
absl::StatusOr<Job> AdmitRequest(const Backend& backend, const JobRequest& request);

// The request's id for this call, as RequestLease::Begin; a stream gets no answer but an error.
// MUST come before the request is admitted: an answer that is kept is given also where it would not
// be.
absl::StatusOr<RequestIds::Answer> LeaseRequestId(const Backend& backend, const DecodedRun& run,
                                                  RequestLease& lease);

// `now` is used to tell when the request arrived by the calendar.
void Summarize(const Job& job, const Outcome& outcome, absl::Time now, v1::RunSummary* out);

// Why a call ends whose client did not send what it should within `limit`.
absl::Status TooSlow(absl::Duration limit);

// That a call was cancelled because its deadline passed: the client's own passes first, because
// gRPC rounds what it says of it up by as much as a hundredth.
bool IsOfDeadline(absl::Duration left, absl::Duration age);
// Why a call of this age that its client no longer waits for ends.
absl::Status CancelReason(const grpc::CallbackServerContext& context, absl::Duration age);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_CALL_H_
