// Calls made of bytes, as a client with a fault would make them.
#ifndef GRIDCLOCK_TESTS_SUPPORT_RAW_CALL_H_
#define GRIDCLOCK_TESTS_SUPPORT_RAW_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include "gridclock/v1/kernels.pb.h"
#include "proto/codec/error.h"

namespace gridclock {

struct RawResult {
  absl::Status status;  // With the server's details.
  std::vector<std::string> messages;
};

// A call under way: one operation at a time, each waits until it is done. One that takes longer
// than any test may wait fails the test by name, and the call is cancelled.
class RawStream {
 public:
  RawStream(std::shared_ptr<grpc::Channel> channel, const std::string& method,
            grpc::ClientContext& context);
  bool Write(const std::string& message);
  void WritesDone();
  bool Read(std::string* message);
  absl::Status Finish();

 private:
  bool Next(const char* operation);
  const std::string method_;
  grpc::ClientContext& context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

inline constexpr char kRunMethod[] = "/gridclock.v1.KernelService/Run";
inline constexpr char kStreamRunMethod[] = "/gridclock.v1.KernelService/StreamRun";

std::shared_ptr<grpc::Channel> Connect(const std::string& address);
// Of what the client has not read yet little is on its way.
std::shared_ptr<grpc::Channel> ConnectNarrowly(const std::string& address);

// Sends `messages` and the end, and reads all that comes. A unary method is a stream of one.
RawResult RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method,
                  const std::vector<std::string>& messages, grpc::ClientContext& context);
RawResult RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method,
                  const std::vector<std::string>& messages);

// square of [1, 2, 3] is [1, 4, 9]: OK, or what was wrong.
absl::Status GoodCall(std::shared_ptr<grpc::Channel> channel);

// A request for `kernel` with one f32 input of one dimension, inline.
v1::RunRequest InlineRequest(const std::string& kernel, const std::vector<float>& x);

// A request for a kernel that runs until ServerProcess::LetGo().
v1::RunRequest HoldRequest();

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_SUPPORT_RAW_CALL_H_
