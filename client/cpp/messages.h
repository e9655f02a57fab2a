// The messages of Run and StreamRun to and from gRPC's buffers. Tensor bytes go out as borrowed
// slices and come in by one copy, into place.
#ifndef GRIDCLOCK_CLIENT_CPP_MESSAGES_H_
#define GRIDCLOCK_CLIENT_CPP_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include "absl/status/statusor.h"
#include "base/copy.h"
#include "client/cpp/loan.h"
#include "client/cpp/run.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/codec/wire.h"

namespace gridclock {

inline constexpr std::uint64_t kInlineLimit = 1 << 20;  // Of a message, all tensors together.
// What servers take by default; the least that any takes.
inline constexpr std::uint64_t kChunkBytes = 1 << 20;
inline constexpr std::uint64_t kLeastChunkBytes = 4 * 1024;
inline constexpr std::uint64_t kHeaderPiece = 200 * 1024;  // The server takes 256 KiB.

// INVALID_ARGUMENT for spans that do not fit their specs; nothing is sent then.
absl::Status CheckInputs(const RunCall& call);
// Bytes of all inputs, made ones too.
std::uint64_t InputBytes(const RunCall& call);

// All of the request but the inputs.
v1::RunRequest EncodeCall(const RunCall& call, const std::string& request_id);
// One input without its data.
void EncodeInput(const CallInput& input, bool streamed, v1::Input* out);

// A RunRequest with its data inline.
grpc::ByteBuffer EncodeUnary(const RunCall& call, const std::string& request_id, Loan& loan);
// The header of a StreamRun, in as many messages of about `piece` bytes as its size asks for.
std::vector<grpc::ByteBuffer> EncodeHeader(const RunCall& call, const std::string& request_id,
                                           std::uint64_t piece);
grpc::ByteBuffer EncodeChunk(const std::string& name, std::uint64_t offset,
                             std::span<const std::byte> bytes, Loan& loan);

// A StreamRunResponse as it came: a chunk is found without being parsed, all else is parsed.
struct ChunkView {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
class IncomingMessage {
 public:
  static absl::StatusOr<IncomingMessage> Read(grpc::ByteBuffer& buffer);
  bool is_chunk() const { return is_chunk_; }
  const ChunkView& chunk() const { return chunk_; }
  // `to` has room for chunk().size.
  void CopyChunk(std::byte* to, Reuse reuse) const;
  const v1::StreamRunResponse& message() const { return message_; }

 private:
  absl::Status ReadChunk(const ByteRange& body);
  std::vector<grpc::Slice> slices_;
  std::vector<std::span<const std::byte>> spans_;
  bool is_chunk_ = false;
  ChunkView chunk_;
  ByteRange data_;
  v1::StreamRunResponse message_;
};

// Whether the bytes of an output come back to the client.
bool IsReturned(const RunCall& call, const std::string& output);
absl::StatusOr<RunResult> DecodeUnary(const RunCall& call, const RunEvents& events,
                                      grpc::ByteBuffer& buffer);
// An announced output, and the place that the caller gave for it, if any.
absl::StatusOr<CallOutput> DecodeOutput(const v1::Output& output, const RunEvents& events,
                                        std::span<std::byte>* to);
// Makes memory for `size` bytes, unless there is a place already.
absl::Status EnsurePlace(std::uint64_t size, CallOutput* output, std::span<std::byte>* to);

// INTERNAL, with the blame where it belongs: on the server.
absl::Status Broken(absl::string_view what);
// The ended call's status with its details; a summary that came with it rides as a payload. gRPC's
// own refusal of a message gets the reason TOO_LARGE and the limit message_bytes, which it lacks.
absl::Status ToStatus(const grpc::Status& status);
// The longest chunk to try after this one of `tried` bytes was refused; nullopt: the failure is
// of another kind, or none is short enough.
std::optional<std::uint64_t> ShorterChunk(const absl::Status& failure, std::uint64_t tried);
absl::Status WithSummary(absl::Status status, const v1::RunSummary& summary);

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_MESSAGES_H_
