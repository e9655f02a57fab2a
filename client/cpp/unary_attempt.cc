#include <utility>

#include <grpcpp/support/byte_buffer.h>

#include "client/cpp/attempt.h"
#include "client/cpp/messages.h"

namespace gridclock {
namespace {

// Alive from the start of the call until the last borrowed slice is back.
struct UnaryAttempt {
  const RunCall& call;
  const RunEvents& events;
  std::shared_ptr<grpc::ClientContext> rpc;
  AttemptDone done;
  grpc::ByteBuffer request{}, response{};
  absl::StatusOr<RunResult> result{};
};

}  // namespace

void StartUnary(grpc::GenericStub& stub, const AttemptContext& context, AttemptDone done) {
  auto* attempt = new UnaryAttempt{.call = context.call,
                                   .events = context.events,
                                   .rpc = context.rpc,
                                   .done = std::move(done)};
  auto* loan = new Loan([attempt] {
    const std::unique_ptr<UnaryAttempt> owned(attempt);
    owned->done(std::move(owned->result));
  });
  attempt->request = EncodeUnary(context.call, context.request_id, *loan);
  stub.UnaryCall(context.rpc.get(), "/gridclock.v1.KernelService/Run", {}, &attempt->request,
                 &attempt->response, [attempt, loan](const grpc::Status& status) {
                   attempt->request.Clear();
                   if (status.ok()) {
                     attempt->result =
                         DecodeUnary(attempt->call, attempt->events, attempt->response);
                   } else {
                     attempt->result = ToStatus(status);
                   }
                   loan->End();
                 });
}

}  // namespace gridclock
