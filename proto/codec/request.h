// RunRequest, StreamRunRequest and their answers between the wire and plain types. Tensor bytes are
// neither parsed nor copied here: coming in they are places in the message, going out the caller
// puts its own memory behind the frames made here.
#ifndef GRIDCLOCK_PROTO_CODEC_REQUEST_H_
#define GRIDCLOCK_PROTO_CODEC_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "gridclock/v1/kernels.pb.h"
#include "proto/codec/wire.h"
#include "proto/types/job.h"

namespace gridclock {

struct RequestLimits {
  std::uint64_t control_bytes = 256 * 1024;      // One message without its tensor bytes.
  std::uint64_t header_bytes = 4 * 1024 * 1024;  // Of a StreamRun, over all its messages.
  std::uint64_t inline_bytes = 1024 * 1024;      // `data` of all inputs of a StreamRun's header.
  std::uint64_t chunk_bytes = 1024 * 1024;
};

// A RunRequest as it came by Run.
struct DecodedRun {
  JobRequest request;
  // One for each of request.inputs: where its `data` lies in the slices; size 0 where there is
  // none.
  std::vector<ByteRange> data;
  // Of all that was asked for, data included; 0 if the request has no request_id. The order of
  // attributes on the wire does not matter.
  std::uint64_t content = 0;
};

// INVALID_ARGUMENT "cannot parse gridclock.v1.RunRequest: ..." for bytes that are no such message,
// with a field path for values that cannot be; RESOURCE_EXHAUSTED (TOO_LARGE) for a control part
// over its limit. Fields that this version does not know are ignored and cost nothing.
// Names, sizes and bounds are not looked at: that is core/admission's.
absl::StatusOr<DecodedRun> DecodeRunRequest(Slices message, const RequestLimits& limits);

// The header of a StreamRun, which may come in several messages.
class StreamHeader {
 public:
  absl::StatusOr<DecodedRun> Finish();
  bool empty() const { return messages_ == 0; }
  // `data` of the inputs, copied: the messages are gone when the header ends. Slices for
  // DecodedRun::data. Valid as long as this object lives and is not added to.
  Slices data() const { return slices_; }

 private:
  friend class StreamRunDecoder;
  v1::RunRequest merged_;
  std::uint64_t bytes_ = 0, data_bytes_ = 0;
  int messages_ = 0;
  std::vector<std::string> data_;
  std::vector<bool> has_data_;
  std::vector<std::span<const std::byte>> slices_;
};

struct StreamChunk {
  std::string name;
  std::uint64_t offset = 0;
  ByteRange data;  // In the slices of the message.
};

// Takes the messages of one StreamRun apart, one after the other.
class StreamRunDecoder {
 public:
  explicit StreamRunDecoder(const RequestLimits& limits) : limits_(limits) {}

  // What a message was: a part of the header (now in header()), or a chunk.
  struct HeaderPart {};
  absl::StatusOr<std::variant<HeaderPart, StreamChunk>> Decode(Slices message);
  StreamHeader& header() { return header_; }

 private:
  absl::Status AddHeader(Slices message, const ByteRange& part);

  const RequestLimits limits_;
  StreamHeader header_;
};

// The frame before the bytes of one output of a RunResponse: name, spec, checksum, and the tag and
// length of `data_bytes` bytes, which MUST follow. The first frame of an answer has the summary
// before it.
struct OutputFrame {
  const JobOutput* output = nullptr;
  std::optional<std::uint64_t> checksum;
  std::uint64_t data_bytes = 0;  // 0: no data, nothing follows.
};
std::string EncodeSummaryField(const v1::RunSummary& summary);
std::string EncodeOutputFrame(const OutputFrame& frame);

// StreamRunResponse messages. The bytes of a chunk MUST follow its frame.
std::string EncodeStreamOutput(const JobOutput& output, std::optional<std::uint64_t> checksum);
std::string EncodeStreamSummary(const v1::RunSummary& summary);
std::string EncodeStreamChunkFrame(absl::string_view name, std::uint64_t offset,
                                   std::uint64_t data_bytes);
// The same for a StreamRunRequest, as clients send it.
std::string EncodeUploadChunkFrame(absl::string_view name, std::uint64_t offset,
                                   std::uint64_t data_bytes);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_CODEC_REQUEST_H_
