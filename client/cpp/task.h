// A call with its retries: one attempt after another, without a thread of its own.
#ifndef GRIDCLOCK_CLIENT_CPP_TASK_H_
#define GRIDCLOCK_CLIENT_CPP_TASK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/alarm.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/cpp/attempt.h"
#include "client/cpp/client.h"

namespace gridclock {

// What every call of a client shares. Outlives the tasks.
struct CallSite {
  const ClientOptions& options;
  grpc::GenericStub& control;
  grpc::GenericStub& bulk;
  std::atomic<std::uint64_t>& chunk_bytes;  // What the server was found to take.
};

// Metadata and deadline of a call.
void Prepare(const ClientOptions& options, absl::Time deadline, grpc::ClientContext* rpc);

class RunHandle::Task : public std::enable_shared_from_this<RunHandle::Task> {
 public:
  Task(const CallSite& site, const RunCall& call, RunEvents events, AttemptDone done);
  void Start();
  void Cancel();

 private:
  void Attempt();
  void Ended(absl::StatusOr<RunResult> result);
  // Whether a shorter chunk may pass than the one that was refused, to this call or another.
  bool MayShorten(const absl::Status& failure);
  // Whether the call shall be made again; sets how long to wait.
  bool MayRetry(const absl::Status& failure, absl::Duration* wait);
  // Tries again after `wait`, or ends with CANCELLED as soon as Cancel is called.
  void WaitThenTry(absl::Status failure, absl::Duration wait);
  // `next` on a thread of gRPC, after `wait` or as soon as Cancel is called; whether the call is
  // still wanted.
  void WaitThen(absl::Duration wait, std::function<void(bool wanted)> next);
  bool EndWait();
  std::shared_ptr<grpc::ClientContext> NewRpc();

  const CallSite site_;
  const RunCall& call_;
  const RunEvents events_;
  AttemptDone done_;
  const absl::Time deadline_;
  // Below: touched by one attempt after the other, never by two threads at once.
  bool stream_;
  std::uint64_t chunk_bytes_ = 0;
  std::string request_id_;
  int attempts_ = 0;
  absl::BitGen random_;

  Mutex mutex_;
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);  // While something is waited for.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<grpc::ClientContext> rpc_ ABSL_GUARDED_BY(mutex_);  // Owned by the attempt.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_TASK_H_
