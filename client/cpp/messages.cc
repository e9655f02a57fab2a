#include "client/cpp/messages.h"

#if __has_include(<grpcpp/impl/proto_utils.h>)
#include <grpcpp/impl/proto_utils.h>
#else
#include <grpcpp/impl/codegen/proto_utils.h>
#endif

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/codec/error.h"
#include "proto/codec/values.h"
#include "proto/codec/wire.h"
#include "proto/types/job.h"

namespace gridclock {
namespace {

constexpr std::uint32_t kDataField = 15;          // Of Input, Output and Chunk.
constexpr std::uint32_t kInputsField = 11;        // Of RunRequest.
constexpr std::uint32_t kRequestChunkField = 2;   // Of StreamRunRequest.
constexpr std::uint32_t kResponseChunkField = 5;  // Of StreamRunResponse.
constexpr std::uint64_t kLendFrom = 8 * 1024;     // Below this a copy costs less than a slice.
constexpr char kSummaryUrl[] = "type.googleapis.com/gridclock.v1.RunSummary";

// Gathers a message: small pieces in one slice, big ones lent.
class SliceBuilder {
 public:
  explicit SliceBuilder(Loan& loan) : loan_(loan) {}
  std::string& text() { return text_; }
  void Add(std::span<const std::byte> bytes) {
    if (bytes.size() < kLendFrom) {
      text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return;
    }
    Flush();
    slices_.push_back(loan_.Lend(bytes));
  }
  grpc::ByteBuffer Take() {
    Flush();
    return {slices_.data(), slices_.size()};
  }

 private:
  void Flush() {
    if (!text_.empty()) slices_.emplace_back(std::exchange(text_, {}));
  }
  Loan& loan_;
  std::string text_;
  std::vector<grpc::Slice> slices_;
};

std::uint64_t TotalBytes(const CallInput& input) {
  std::uint64_t total = 0;
  for (const auto& bytes : input.bytes) total += bytes.size();
  return total;
}

std::uint64_t FieldBytes(std::uint64_t size) {
  return 1 + VarintBytes(size) + size;
}

absl::Status CheckInput(const CallInput& input) {
  for (const TensorSpec& tensor : input.value.tensors) {
    GC_RETURN_IF_ERROR(Annotate(CheckedBytes(tensor).status(), input.name));
  }
  if (input.generator.has_value()) return absl::OkStatus();
  if (input.bytes.size() != input.value.tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", input.name, "': ", input.value.tensors.size(), " tensors need as ",
                     "many spans, got ", input.bytes.size()));
  }
  for (std::size_t i = 0; i < input.bytes.size(); ++i) {
    const auto want = static_cast<std::uint64_t>(Bytes(input.value.tensors[i]));
    if (input.bytes[i].size() == want) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", input.name,
                                                   "': ", ToText(input.value.tensors[i]), " has ",
                                                   want, " bytes, got ", input.bytes[i].size()));
  }
  return absl::OkStatus();
}

grpc::ByteBuffer Serialize(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

v1::OutputRequest::Sink EncodeSink(Sink sink) {
  return static_cast<v1::OutputRequest::Sink>(sink);
}

}  // namespace

absl::Status Broken(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the server broke the protocol: ", what));
}

bool Passed(const v1::Verification& verification) {
  return verification.mismatches() == 0 && verification.violations() == 0;
}

absl::Status CheckInputs(const RunCall& call) {
  for (const CallInput& input : call.inputs) GC_RETURN_IF_ERROR(CheckInput(input));
  return absl::OkStatus();
}

std::uint64_t InputBytes(const RunCall& call) {
  std::uint64_t total = 0;
  for (const CallInput& input : call.inputs) total += WireBytes(input.value);
  return total;
}

v1::RunRequest EncodeCall(const RunCall& call, const std::string& request_id) {
  v1::RunRequest out;
  out.set_kernel(call.kernel);
  out.set_variant(call.variant);
  out.set_device(call.device);
  for (const auto& [name, value] : call.attributes) {
    Encode(value, &(*out.mutable_attributes())[name]);
  }
  for (const OutputWish& wish : call.outputs) {
    auto* output = out.add_outputs();
    output->set_name(wish.name);
    output->set_sink(EncodeSink(wish.sink));
  }
  for (const std::string& name : call.in_place) out.add_in_place(name);
  if (call.measure.has_value()) Encode(*call.measure, out.mutable_measure());
  out.set_verify(call.verify);
  out.set_request_id(request_id);
  out.set_kernel_time_limit_seconds(absl::ToDoubleSeconds(call.kernel_time_limit));
  if (call.program.has_value()) *out.mutable_program() = *call.program;
  if (call.reference.has_value()) *out.mutable_reference() = *call.reference;
  return out;
}

void EncodeInput(const CallInput& input, bool streamed, v1::Input* out) {
  out->set_name(input.name);
  Encode(input.value, out->mutable_spec());
  if (input.generator.has_value()) {
    Encode(*input.generator, out->mutable_generate());
  } else if (streamed) {
    out->mutable_stream();
  } else {
    out->mutable_inline_();
  }
}

grpc::ByteBuffer EncodeUnary(const RunCall& call, const std::string& request_id, Loan& loan) {
  SliceBuilder out(loan);
  EncodeCall(call, request_id).AppendToString(&out.text());
  for (const CallInput& input : call.inputs) {
    v1::Input message;
    EncodeInput(input, /*streamed=*/false, &message);
    const std::string head = message.SerializeAsString();
    const std::uint64_t data = TotalBytes(input);
    const bool has_data = !input.generator.has_value() && data > 0;
    AppendTag(kInputsField, WireType::kBytes, &out.text());
    AppendVarint(head.size() + (has_data ? FieldBytes(data) : 0), &out.text());
    out.text().append(head);
    if (!has_data) continue;
    AppendTag(kDataField, WireType::kBytes, &out.text());
    AppendVarint(data, &out.text());
    for (const auto& bytes : input.bytes) out.Add(bytes);
  }
  return out.Take();
}

std::vector<grpc::ByteBuffer> EncodeHeader(const RunCall& call, const std::string& request_id,
                                           std::uint64_t piece) {
  std::vector<grpc::ByteBuffer> out;
  v1::StreamRunRequest message;
  *message.mutable_header() = EncodeCall(call, request_id);
  std::size_t size = message.ByteSizeLong();
  for (const CallInput& input : call.inputs) {
    v1::Input encoded;
    EncodeInput(input, /*streamed=*/true, &encoded);
    const std::size_t more = FieldBytes(encoded.ByteSizeLong());
    if (size + more > piece) {
      out.push_back(Serialize(message));
      message.mutable_header()->Clear();
      size = 0;
    }
    size += more;
    *message.mutable_header()->add_inputs() = std::move(encoded);
  }
  out.push_back(Serialize(message));
  return out;
}

grpc::ByteBuffer EncodeChunk(const std::string& name, std::uint64_t offset,
                             std::span<const std::byte> bytes, Loan& loan) {
  v1::Chunk chunk;
  chunk.set_name(name);
  chunk.set_offset(offset);
  const std::string head = chunk.SerializeAsString();
  SliceBuilder out(loan);
  AppendTag(kRequestChunkField, WireType::kBytes, &out.text());
  AppendVarint(head.size() + FieldBytes(bytes.size()), &out.text());
  out.text().append(head);
  AppendTag(kDataField, WireType::kBytes, &out.text());
  AppendVarint(bytes.size(), &out.text());
  out.Add(bytes);
  return out.Take();
}

absl::StatusOr<IncomingMessage> IncomingMessage::Read(grpc::ByteBuffer& buffer) {
  IncomingMessage out;
  if (!buffer.Dump(&out.slices_).ok()) return Broken("a message that cannot be read");
  for (const grpc::Slice& slice : out.slices_) {
    out.spans_.push_back(std::as_bytes(std::span<const std::uint8_t>(slice.begin(), slice.size())));
  }
  WireReader reader{Slices(out.spans_)};
  std::uint32_t field = 0;
  WireType type{};
  ByteRange body;
  if (reader.ReadTag(&field, &type) && field == kResponseChunkField && type == WireType::kBytes) {
    if (!reader.ReadBytes(&body) || !reader.done()) return Broken("a chunk that cannot be read");
    GC_RETURN_IF_ERROR(out.ReadChunk(body));
    return out;
  }
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::StreamRunResponse>::Deserialize(&buffer, &out.message_);
  if (!parsed.ok()) return Broken("a message that is no StreamRunResponse");
  return out;
}

absl::Status IncomingMessage::ReadChunk(const ByteRange& body) {
  const Slices slices(spans_);
  WireReader reader(slices, body);
  is_chunk_ = true;
  while (!reader.done()) {
    std::uint32_t field = 0;
    WireType type{};
    ByteRange name;
    if (!reader.ReadTag(&field, &type)) break;
    if (field == 1 && type == WireType::kBytes) {
      if (reader.ReadBytes(&name)) chunk_.name = ToString(slices, name);
    } else if (field == 2 && type == WireType::kVarint) {
      reader.ReadVarint(&chunk_.offset);
    } else if (field == kDataField && type == WireType::kBytes) {
      reader.ReadBytes(&data_);
    } else {
      reader.Skip(field, type);
    }
    if (!reader.error().empty()) break;
  }
  if (!reader.error().empty()) return Broken(absl::StrCat("a chunk: ", reader.error()));
  chunk_.size = data_.size;
  return absl::OkStatus();
}

void IncomingMessage::CopyChunk(std::byte* to, Reuse reuse) const {
  CopyTo(Slices(spans_), data_, to, reuse);
}

absl::StatusOr<CallOutput> DecodeOutput(const v1::Output& output, const RunEvents& events,
                                        std::span<std::byte>* to) {
  CallOutput out;
  out.name = output.name();
  const auto value = Decode(output.spec(), "output");
  if (!value.ok()) return Broken(absl::StrCat("'", out.name, "': ", value.status().message()));
  out.value = *value;
  if (output.has_checksum()) out.checksum = output.checksum();
  const std::uint64_t size = WireBytes(out.value);
  if (events.place) *to = events.place(out.name, out.value);
  if (!to->empty() && to->size() != size) {
    return absl::InvalidArgumentError(absl::StrCat("output '", out.name, "' has ", size,
                                                   " bytes, the place given for it ", to->size()));
  }
  return out;
}

bool IsReturned(const RunCall& call, const std::string& output) {
  for (const OutputWish& wish : call.outputs) {
    if (wish.name == output) return wish.sink == Sink::kReturn;
  }
  return true;
}

namespace {

absl::StatusOr<CallOutput> DecodeInline(const RunCall& call, const RunEvents& events,
                                        const v1::Output& output) {
  std::span<std::byte> to;
  GC_ASSIGN_OR_RETURN(CallOutput out, DecodeOutput(output, events, &to));
  const std::uint64_t want = IsReturned(call, out.name) ? WireBytes(out.value) : 0;
  const std::string& data = output.data();
  if (data.size() != want) {
    return Broken(
        absl::StrCat("output '", out.name, "' of ", want, " bytes came with ", data.size()));
  }
  if (want == 0) return out;
  GC_RETURN_IF_ERROR(EnsurePlace(want, &out, &to));
  std::memcpy(to.data(), data.data(), want);
  out.bytes = to;
  return out;
}

}  // namespace

absl::StatusOr<RunResult> DecodeUnary(const RunCall& call, const RunEvents& events,
                                      grpc::ByteBuffer& buffer) {
  v1::RunResponse response;
  if (!grpc::SerializationTraits<v1::RunResponse>::Deserialize(&buffer, &response).ok()) {
    return Broken("an answer that is no RunResponse");
  }
  RunResult result;
  result.summary = std::move(*response.mutable_summary());
  for (const v1::Output& output : response.outputs()) {
    GC_ASSIGN_OR_RETURN(CallOutput out, DecodeInline(call, events, output));
    result.outputs.push_back(std::move(out));
  }
  return result;
}

absl::Status EnsurePlace(std::uint64_t size, CallOutput* output, std::span<std::byte>* to) {
  if (!to->empty() || size == 0) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(output->owned, Buffer::Create(size));
  *to = output->owned.span();
  return absl::OkStatus();
}

absl::Status WithSummary(absl::Status status, const v1::RunSummary& summary) {
  status.SetPayload(kSummaryUrl, absl::Cord(summary.SerializeAsString()));
  return status;
}

std::optional<v1::RunSummary> PartialSummary(const absl::Status& status) {
  const auto payload = status.GetPayload(kSummaryUrl);
  v1::RunSummary summary;
  if (!payload.has_value() || !summary.ParseFromString(std::string(*payload))) return std::nullopt;
  return summary;
}

namespace {

// "Received message larger than max (5242880 vs. 4259840)": gRPC refuses a message before the
// server sees it, and says no more than this.
bool IsRefusalOfGrpc(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         status.error_details().empty() &&
         absl::StrContains(status.error_message(), "larger than max");
}

}  // namespace

std::optional<std::uint64_t> ShorterChunk(const absl::Status& failure, std::uint64_t tried) {
  const ErrorDetails details = DetailsOf(failure);
  const auto limit = details.metadata.find("limit");
  if (details.reason != "TOO_LARGE" || limit == details.metadata.end()) return std::nullopt;
  std::uint64_t next = tried / 2;
  if (limit->second == "chunk_bytes") {
    const auto value = details.metadata.find("value");
    std::uint64_t most = 0;
    if (value != details.metadata.end() && absl::SimpleAtoi(value->second, &most)) next = most;
  } else if (limit->second != "message_bytes" && limit->second != "control_bytes") {
    return std::nullopt;
  }
  if (next >= tried || next < kLeastChunkBytes) return std::nullopt;
  return next;
}

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (IsRefusalOfGrpc(status)) {
    ErrorDetails details;
    details.reason = "TOO_LARGE";
    details.metadata["limit"] = "message_bytes";
    return WithDetails(absl::ResourceExhaustedError(absl::StrCat(
                           status.error_message(),
                           "; send tensors by StreamRun, in chunks that fit a message, or ",
                           "start the server with a larger --limit-message-bytes")),
                       details);
  }
  DecodedError error = DecodeError(static_cast<absl::StatusCode>(status.error_code()),
                                   status.error_message(), status.error_details());
  return error.summary.has_value() ? WithSummary(std::move(error.status), *error.summary)
                                   : std::move(error.status);
}

}  // namespace gridclock
