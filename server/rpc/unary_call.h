// A call of one request and one answer. To gRPC it is a stream: gRPC collects the request of what
// it knows as unary before anybody sees the call, who it is from, or that it never comes.
#ifndef GRIDCLOCK_SERVER_RPC_UNARY_CALL_H_
#define GRIDCLOCK_SERVER_RPC_UNARY_CALL_H_

#include <cstdint>
#include <memory>
#include <string>

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/core/read_gate.h"
#include "server/rpc/backend.h"
#include "server/rpc/call.h"
#include "server/rpc/stall_watch.h"

namespace gridclock {

// How a call's request comes in.
struct Intake {
  ReadGate& gate;
  absl::Duration limit;  // From its turn on.
};
// Of calls whose requests are as long as messages may be, and of those whose are a few bytes: they
// come with the headers, wait for no upload of their client, and hold their places only shortly.
Intake LargeRequests(const Backend& backend);
Intake SmallRequests(const Backend& backend, ReadGate& gate);
inline Intake SmallRequests(const Backend& backend) {
  return SmallRequests(backend, backend.small_requests);
}

// Knows its client from the headers on, waits for the request no longer than its intake says, and
// stream_stall_seconds for the client to take the answer.
class UnaryCall : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                  public ReadGate::Reader,
                  public StallWatch::Stream,
                  public std::enable_shared_from_this<UnaryCall> {
 public:
  void Begin();

  void OnReadDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;
  bool TakeTurn() final;
  void CheckStall(absl::Time now) final;
  void Drain(const absl::Status& why, bool grace_over) final;

 protected:
  UnaryCall(Backend& backend, RpcMethod method, grpc::CallbackServerContext& context,
            Intake intake);

  // Whose call it is. Before anything of the request is taken.
  virtual absl::StatusOr<std::string> Authorize() = 0;
  // The request is here. OK: Reply() or End() comes, from any thread, or has come.
  virtual absl::Status Accept(const grpc::ByteBuffer& request) = 0;
  // The client is gone. May come while Accept() runs, and when the call has ended.
  virtual void Abandon() {}

  // Each call has one of these, once.
  void Reply(grpc::ByteBuffer response);
  void End(const absl::Status& status, const CallSubject& subject, const v1::RunSummary* summary);
  void End(const absl::Status& status) { End(status, {.client = principal_}, nullptr); }

  Backend& backend_;
  grpc::CallbackServerContext& context_;
  CallMeter meter_;
  std::string principal_;

 private:
  // Entering: not yet let in by the gate. Answering: gRPC was told to finish.
  enum class Phase : std::uint8_t { kEntering, kReading, kServing, kAnswering, kDone };

  void Enter();
  // It asks for nothing yet, and from now on never will: who hears true ends it.
  bool Interrupt() ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteAnswer() ABSL_LOCKS_EXCLUDED(mutex_);

  const Intake intake_;
  grpc::ByteBuffer request_, response_;
  std::uint64_t received_ = 0;
  Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kEntering;
  absl::Time give_up_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  // gRPC knows this call by its bare address until OnDone; others may share it.
  std::shared_ptr<UnaryCall> self_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_UNARY_CALL_H_
