#include "tests/support/raw_call.h"

#include <chrono>
#include <cstring>
#include <utility>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string out;
  if (!buffer.Dump(&slices).ok()) return out;
  for (const grpc::Slice& slice : slices) {
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return out;
}

}  // namespace

RawStream::RawStream(std::shared_ptr<grpc::Channel> channel, const std::string& method,
                     grpc::ClientContext& context)
    : method_(method),
      context_(context),
      stub_(std::move(channel)),
      call_(stub_.PrepareCall(&context, method, &queue_)) {
  call_->StartCall(nullptr);
  Next("StartCall");
}

bool RawStream::Next(const char* operation) {
  constexpr std::chrono::minutes kLongest{5};
  void* tag = nullptr;
  bool ok = false;
  const auto end = std::chrono::system_clock::now() + kLongest;
  if (queue_.AsyncNext(&tag, &ok, end) == grpc::CompletionQueue::TIMEOUT) {
    ADD_FAILURE() << operation << " of " << method_ << " has not ended in " << kLongest.count()
                  << " minutes";
    context_.TryCancel();
    queue_.Next(&tag, &ok);
    return false;
  }
  return ok;
}

bool RawStream::Write(const std::string& message) {
  const grpc::Slice slice(message);
  call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  return Next("Write");
}

void RawStream::WritesDone() {
  call_->WritesDone(nullptr);
  Next("WritesDone");
}

bool RawStream::Read(std::string* message) {
  grpc::ByteBuffer buffer;
  call_->Read(&buffer, nullptr);
  if (!Next("Read")) return false;
  *message = ToString(buffer);
  return true;
}

absl::Status RawStream::Finish() {
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Next("Finish");
  return DecodeError(static_cast<absl::StatusCode>(status.error_code()), status.error_message(),
                     status.error_details())
      .status;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("grpc.use_local_subchannel_pool", 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

std::shared_ptr<grpc::Channel> ConnectNarrowly(const std::string& address) {
  grpc::ChannelArguments narrow;
  narrow.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 16 * 1024);
  narrow.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), narrow);
}

RawResult RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method,
                  const std::vector<std::string>& messages, grpc::ClientContext& context) {
  RawStream stream(std::move(channel), method, context);
  bool ok = true;
  for (std::size_t i = 0; ok && i < messages.size(); ++i) ok = stream.Write(messages[i]);
  if (ok) stream.WritesDone();
  RawResult result;
  for (std::string message; stream.Read(&message);) result.messages.push_back(message);
  result.status = stream.Finish();
  return result;
}

RawResult RawCall(std::shared_ptr<grpc::Channel> channel, const std::string& method,
                  const std::vector<std::string>& messages) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  return RawCall(channel, method, messages, context);
}

v1::RunRequest InlineRequest(const std::string& kernel, const std::vector<float>& x) {
  v1::RunRequest request;
  request.set_kernel(kernel);
  v1::Input* input = request.add_inputs();
  input->set_name("x");
  input->mutable_spec()->set_dtype(v1::F32);
  input->mutable_spec()->add_dims(static_cast<std::int64_t>(x.size()));
  input->mutable_inline_();
  input->set_data(std::string(reinterpret_cast<const char*>(x.data()), x.size() * sizeof(float)));
  return request;
}

v1::RunRequest HoldRequest() {
  v1::RunRequest request;
  request.set_kernel("hold");
  request.set_kernel_time_limit_seconds(300);
  return request;
}

absl::Status GoodCall(std::shared_ptr<grpc::Channel> channel) {
  const RawResult result =
      RawCall(channel, kRunMethod, {InlineRequest("square", {1, 2, 3}).SerializeAsString()});
  if (!result.status.ok()) return result.status;
  v1::RunResponse response;
  if (result.messages.size() != 1 || !response.ParseFromString(result.messages[0])) {
    return absl::InternalError("no RunResponse came");
  }
  const float want[] = {1, 4, 9};
  if (response.outputs_size() != 1 || response.outputs(0).data().size() != sizeof(want) ||
      std::memcmp(response.outputs(0).data().data(), want, sizeof(want)) != 0) {
    return absl::InternalError(absl::StrCat("wrong answer: ", response.ShortDebugString()));
  }
  return absl::OkStatus();
}

}  // namespace gridclock
