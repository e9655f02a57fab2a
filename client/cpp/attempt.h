// One try of a call: a unary Run or a StreamRun, with gRPC's callbacks.
#ifndef GRIDCLOCK_CLIENT_CPP_ATTEMPT_H_
#define GRIDCLOCK_CLIENT_CPP_ATTEMPT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/run.h"

namespace gridclock {

using AttemptDone = std::function<void(absl::StatusOr<RunResult>)>;

// Borrowed until `done` is called. gRPC holds no byte of the inputs any more then, nor does
// anything of the call hold the channel: were it released later, on a thread of gRPC, that thread
// would wait for its own end.
struct AttemptContext {
  const RunCall& call;
  const RunEvents& events;
  const std::string& request_id;
  std::uint64_t chunk_bytes = 0;  // Of a stream, at most.
  // Taken over. Others may hold it only while they cancel it.
  std::shared_ptr<grpc::ClientContext>& rpc;
};

void StartUnary(grpc::GenericStub& stub, const AttemptContext& context, AttemptDone done);
void StartStream(grpc::GenericStub& stub, const AttemptContext& context, AttemptDone done);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_ATTEMPT_H_
