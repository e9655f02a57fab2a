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
                                   .rpc = std::move(context.rpc),
                                   .done = std::move(done)};
  auto* loan = new Loan([attempt] {
    std::unique_ptr<UnaryAttempt> owned(attempt);
    const AttemptDone done = std::move(owned->done);
    absl::StatusOr<RunResult> result = std::move(owned->result);
    owned.reset();
    done(std::move(result));
  });
  attempt->request = EncodeUnary(context.call, context.request_id, *loan);
  stub.UnaryCall(attempt->rpc.get(), "/gridclock.v1.KernelService/Run", {}, &attempt->request,
                 &attempt->response, [attempt, loan](const grpc::Status& status) {
                   // The stream keeps unsent slices for as long as the context lives.
                   attempt->request.Clear();
                   attempt->rpc.reset();
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
