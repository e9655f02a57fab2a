#include "proto/codec/request.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/codec/unparsable.h"
#include "proto/codec/values.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using v1::RunRequest;

constexpr std::size_t kMaxName = 128;
constexpr int kMostOperands = 1024;      // Inputs of a request; outputs; attributes.
constexpr int kMostTensors = 64 * 1024;  // Of all its lists together.

absl::Status TooLarge(absl::string_view what, std::uint64_t came, absl::string_view limit_name,
                      std::uint64_t limit, absl::string_view advice) {
  ErrorDetails details;
  details.reason = "TOO_LARGE";
  details.metadata = {{"limit", std::string(limit_name)}, {"value", absl::StrCat(limit)}};
  return WithDetails(absl::ResourceExhaustedError(
                         absl::StrCat(what, ": ", came, " bytes, at most ", limit, "; ", advice)),
                     details);
}

// ---- From bytes to the message without its data, and the places of the data. ----

struct Split {
  std::string control;          // A RunRequest whose inputs have no data.
  std::vector<ByteRange> data;  // By input.
  std::vector<bool> has_data;   // A field `data` came, even if empty.
  std::uint64_t data_bytes = 0;
};

// Copies all of an Input but its data. Of a field that comes twice the last one counts.
bool SplitInput(WireReader input, std::string* control, ByteRange* data, bool* has_data) {
  while (!input.done()) {
    const ByteRange start = input.Here();
    std::uint32_t field = 0;
    WireType type;
    bool ok = input.ReadTag(&field, &type);
    if (ok && field == v1::Input::kDataFieldNumber && type == WireType::kBytes) {
      ok = input.ReadBytes(data);
      *has_data = true;
    } else if (ok) {
      ok = input.Skip(field, type);
      if (ok && field <= v1::Input::kGenerateFieldNumber) input.AppendSince(start, control);
    }
    if (!ok) return false;
  }
  return true;
}

class Splitter {
 public:
  Splitter(Slices message, WireReader reader, std::uint64_t control_bytes)
      : message_(message), whole_(reader), reader_(reader), limit_(control_bytes) {}

  absl::StatusOr<Split> Run() {
    while (!reader_.done()) {
      if (!Field()) return Unparsable(*RunRequest::descriptor(), whole_);
      if (control_bytes_ > limit_) return ControlTooLarge();
    }
    return std::move(out_);
  }

 private:
  bool Field() {
    const ByteRange start = reader_.Here();
    std::uint32_t field = 0;
    WireType type;
    if (!reader_.ReadTag(&field, &type)) return false;
    if (field == RunRequest::kInputsFieldNumber && type == WireType::kBytes) return Input();
    if (!reader_.Skip(field, type)) return false;
    if (field > RunRequest::kReferenceFieldNumber) return true;
    control_bytes_ += start.size - reader_.left();
    // What is over the limit is counted and not copied.
    if (control_bytes_ <= limit_) reader_.AppendSince(start, &out_.control);
    return true;
  }

  bool Input() {
    ByteRange range, data;
    if (!reader_.ReadBytes(&range)) return false;
    input_.clear();
    bool has_data = false;
    if (!SplitInput(WireReader(message_, range), &input_, &data, &has_data)) return false;
    const std::size_t before = out_.control.size();
    AppendTag(RunRequest::kInputsFieldNumber, WireType::kBytes, &out_.control);
    AppendVarint(input_.size(), &out_.control);
    out_.control += input_;
    control_bytes_ += out_.control.size() - before;
    out_.data.push_back(data);
    out_.has_data.push_back(has_data);
    out_.data_bytes += data.size;
    return true;
  }

  absl::Status ControlTooLarge() const {
    return TooLarge("gridclock.v1.RunRequest without its tensor bytes", control_bytes_,
                    "control_bytes", limit_, "larger tensors go as chunks of a StreamRun");
  }

  const Slices message_;
  const WireReader whole_;  // From the start, for who asks what is wrong.
  WireReader reader_;
  const std::uint64_t limit_;
  std::uint64_t control_bytes_ = 0;
  std::string input_;
  Split out_;
};

absl::Status ParseControl(const std::string& control, RunRequest* out) {
  if (out->ParseFromString(control)) return absl::OkStatus();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(control));
  return Unparsable(*RunRequest::descriptor(), WireReader({&bytes, 1}));
}

// ---- From the message to the JobRequest. ----

absl::Status DecodeSource(const v1::Input& input, bool streamed, bool has_data,
                          const std::string& field, InputRequest* out) {
  using Source = v1::Input::SourceCase;
  const std::string source = absl::StrCat(field, ".source");
  switch (input.source_case()) {
    case Source::kInline:
      out->source = SourceKind::kInline;
      break;
    case Source::kStream:
      out->source = SourceKind::kStream;
      break;
    case Source::kGenerate:
      out->source = SourceKind::kGenerate;
      break;
    case Source::SOURCE_NOT_SET:
      if (!has_data) return InvalidField(source, "want one of inline, stream, generate; got none");
      out->source = SourceKind::kInline;
  }
  if (out->source != SourceKind::kInline && has_data) {
    return InvalidField(absl::StrCat(field, ".data"),
                        absl::StrCat("want none but of an inline input, got some"));
  }
  if (out->source == SourceKind::kStream && !streamed) {
    return InvalidField(source,
                        "want inline or generate of a Run, got stream, which is for StreamRun");
  }
  if (out->source != SourceKind::kGenerate) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(out->generator, Decode(input.generate(), absl::StrCat(field, ".generate")));
  return absl::OkStatus();
}

absl::Status DecodeInputs(const RunRequest& message, const std::vector<bool>& has_data,
                          JobRequest* out) {
  out->inputs.reserve(static_cast<std::size_t>(message.inputs_size()));
  for (int i = 0; i < message.inputs_size(); ++i) {
    const v1::Input& input = message.inputs(i);
    const std::string field = absl::StrCat("inputs[", i, "]");
    InputRequest& to = out->inputs.emplace_back();
    to.operand.name = input.name();
    GC_ASSIGN_OR_RETURN(to.operand.value, Decode(input.spec(), absl::StrCat(field, ".spec")));
    GC_RETURN_IF_ERROR(
        DecodeSource(input, out->streamed, has_data[static_cast<std::size_t>(i)], field, &to));
  }
  return absl::OkStatus();
}

absl::StatusOr<SinkKind> DecodeSink(int sink, bool streamed, absl::string_view field) {
  switch (sink) {
    case v1::OutputRequest::SINK_UNSPECIFIED:
    case v1::OutputRequest::RETURN:
      return streamed ? SinkKind::kStream : SinkKind::kInline;
    case v1::OutputRequest::DISCARD:
      return SinkKind::kDiscard;
    case v1::OutputRequest::CHECKSUM:
      return SinkKind::kChecksum;
    default:
      return InvalidField(field, absl::StrCat("want RETURN, DISCARD or CHECKSUM, got ", sink));
  }
}

absl::Status DecodeOutputs(const RunRequest& message, JobRequest* out) {
  for (int i = 0; i < message.outputs_size(); ++i) {
    const auto& output = message.outputs(i);
    const std::string field = absl::StrCat("outputs[", i, "]");
    GC_ASSIGN_OR_RETURN(const SinkKind sink,
                        DecodeSink(output.sink(), out->streamed, absl::StrCat(field, ".sink")));
    out->outputs.push_back({output.name(), sink});
  }
  for (int i = 0; i < message.in_place_size(); ++i) {
    out->in_place.push_back(message.in_place(i));
  }
  return absl::OkStatus();
}

using Attributes = google::protobuf::Map<std::string, v1::AttributeValue>;

absl::Status DecodeAttributes(const Attributes& attributes, absl::string_view field,
                              std::vector<NamedAttribute>* out) {
  // A map has no order; errors about attributes, of here and of later, shall not depend on chance.
  std::vector<const google::protobuf::MapPair<std::string, v1::AttributeValue>*> sorted;
  sorted.reserve(attributes.size());
  for (const auto& entry : attributes) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
  for (const auto* entry : sorted) {
    NamedAttribute& to = out->emplace_back();
    to.name = entry->first;
    GC_ASSIGN_OR_RETURN(to.value, Decode(entry->second, absl::StrCat(field, ".", Escape(to.name))));
  }
  return absl::OkStatus();
}

absl::Status DecodeTimeLimit(double seconds, JobRequest* out) {
  // Less is no time that a kernel could keep: each such call would cost its device a worker.
  constexpr double kLeast = 1e-3;
  if (seconds != 0 && !(seconds >= kLeast)) {
    return InvalidField(
        "kernel_time_limit_seconds",
        absl::StrCat("want ", kLeast, " or more, or 0 for the server's default, got ", seconds));
  }
  out->kernel_time_limit = absl::Seconds(seconds);  // What is too much is the server's to say.
  return absl::OkStatus();
}

ProgramRequest DecodeProgram(const v1::Program& message) {
  ProgramRequest out;
  out.words = message.words();
  for (const v1::Program::Launch& launch : message.launches()) {
    out.launches.push_back({.module = launch.module(),
                            .entry = launch.entry(),
                            .words = launch.words(),
                            .cooperative = launch.cooperative()});
  }
  for (const v1::Program::Global& global : message.globals()) {
    out.globals.push_back(
        {.module = global.module(), .name = global.name(), .from = global.from()});
  }
  return out;
}

absl::StatusOr<ReferenceRequest> DecodeReference(const v1::Reference& message) {
  constexpr std::int64_t kMostTerms = std::int64_t{1} << 40;
  ReferenceRequest out{.kernel = message.kernel(), .attributes = {}, .terms = message.terms()};
  if (out.terms < 0 || out.terms > kMostTerms) {
    return InvalidField("reference.terms",
                        absl::StrCat("want 0 to ", kMostTerms, ", got ", message.terms()));
  }
  GC_RETURN_IF_ERROR(
      DecodeAttributes(message.attributes(), "reference.attributes", &out.attributes));
  if (message.has_program()) out.program = DecodeProgram(message.program());
  return out;
}

absl::StatusOr<JobRequest> ToJobRequest(const RunRequest& message, bool streamed,
                                        const std::vector<bool>& has_data) {
  JobRequest out;
  out.streamed = streamed;
  out.kernel = message.kernel();
  out.variant = message.variant();
  out.device = message.device();
  out.request_id = message.request_id();
  out.verify = message.verify();
  GC_RETURN_IF_ERROR(DecodeInputs(message, has_data, &out));
  GC_RETURN_IF_ERROR(DecodeOutputs(message, &out));
  GC_RETURN_IF_ERROR(DecodeAttributes(message.attributes(), "attributes", &out.attributes));
  GC_RETURN_IF_ERROR(DecodeTimeLimit(message.kernel_time_limit_seconds(), &out));
  if (message.has_measure()) {
    GC_ASSIGN_OR_RETURN(out.measure, Decode(message.measure()));
  }
  if (message.has_program()) out.program = DecodeProgram(message.program());
  if (message.has_reference()) {
    GC_ASSIGN_OR_RETURN(out.reference, DecodeReference(message.reference()));
  }
  return out;
}

// Deterministic: maps come sorted.
std::uint64_t ContentOf(const RunRequest& message, Slices slices,
                        const std::vector<ByteRange>& data) {
  std::string text;
  {
    google::protobuf::io::StringOutputStream stream(&text);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  std::size_t hash = absl::HashOf(text);
  for (const ByteRange& range : data) hash = absl::HashOf(hash, ToString(slices, range));
  return hash;
}

absl::Status CheckInlineBytes(std::uint64_t came, std::uint64_t limit) {
  if (came <= limit) return absl::OkStatus();
  return WithReason(
      InvalidField("inputs", absl::StrCat("their inline data is ", came, " bytes in all, at most ",
                                          limit, "; send more as chunks of a StreamRun")),
      "USE_STREAM");
}

absl::StatusOr<DecodedRun> Finish(const RunRequest& message, bool streamed, Slices slices,
                                  std::vector<ByteRange> data, const std::vector<bool>& has_data) {
  DecodedRun out;
  GC_ASSIGN_OR_RETURN(out.request, ToJobRequest(message, streamed, has_data));
  for (std::size_t i = 0; i < data.size(); ++i) out.request.inputs[i].inline_bytes = data[i].size;
  if (!message.request_id().empty()) out.content = ContentOf(message, slices, data);
  out.data = std::move(data);
  return out;
}

// ---- Frames. ----

constexpr std::uint32_t kDataField = 15;
static_assert(v1::Output::kDataFieldNumber == kDataField);
static_assert(v1::Chunk::kDataFieldNumber == kDataField);
static_assert(v1::Input::kDataFieldNumber == kDataField);

// A field of type message: its head, and the tag and length of `data_bytes` that follow.
std::string FrameField(std::uint32_t field, std::string head, std::uint64_t data_bytes) {
  if (data_bytes > 0) {
    AppendTag(kDataField, WireType::kBytes, &head);
    AppendVarint(data_bytes, &head);
  }
  std::string out;
  out.reserve(head.size() + 12);
  AppendTag(field, WireType::kBytes, &out);
  AppendVarint(head.size() + data_bytes, &out);
  out += head;
  return out;
}

std::string OutputHead(const JobOutput& output, std::optional<std::uint64_t> checksum) {
  v1::Output head;
  head.set_name(output.name);
  Encode(output.value, head.mutable_spec());
  if (checksum) head.set_checksum(*checksum);
  return head.SerializeAsString();
}

std::string ChunkHead(absl::string_view name, std::uint64_t offset) {
  v1::Chunk head;
  head.set_name(std::string(name));
  head.set_offset(offset);
  return head.SerializeAsString();
}

// A few bytes on the wire become a hundred in memory, so counts are bounded besides bytes.
absl::Status CheckCounts(const RunRequest& message) {
  struct Count {
    absl::string_view field;
    int count = 0, most = kMostOperands;
  };
  const v1::Program& program = message.program();
  const v1::Program& reference = message.reference().program();
  const Count counts[] = {
      {"inputs", message.inputs_size()},
      {"outputs", message.outputs_size()},
      {"in_place", message.in_place_size()},
      {"attributes", message.attributes_size()},
      {"reference.attributes", message.reference().attributes_size()},
      {"program.launches", program.launches_size(), static_cast<int>(kMostLaunches)},
      {"program.globals", program.globals_size(), static_cast<int>(kMostGlobals)},
      {"reference.program.launches", reference.launches_size(), static_cast<int>(kMostLaunches)},
      {"reference.program.globals", reference.globals_size(), static_cast<int>(kMostGlobals)}};
  for (const auto& [field, count, most] : counts) {
    if (count > most)
      return InvalidField(field, absl::StrCat("want at most ", most, ", got ", count));
  }
  std::int64_t tensors = 0;
  for (const v1::Input& input : message.inputs()) tensors += input.spec().ranks_size();
  if (tensors > kMostTensors) {
    return InvalidField("inputs", absl::StrCat("want at most ", kMostTensors,
                                               " tensors in all lists together, got ", tensors));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DecodedRun> DecodeRunRequest(Slices message, const RequestLimits& limits) {
  GC_ASSIGN_OR_RETURN(Split split,
                      Splitter(message, WireReader(message), limits.control_bytes).Run());
  RunRequest parsed;
  GC_RETURN_IF_ERROR(ParseControl(split.control, &parsed));
  GC_RETURN_IF_ERROR(CheckCounts(parsed));
  return Finish(parsed, /*streamed=*/false, message, std::move(split.data), split.has_data);
}

absl::StatusOr<DecodedRun> StreamHeader::Finish() {
  slices_.clear();
  std::vector<ByteRange> ranges;
  for (const std::string& bytes : data_) {
    ranges.push_back({slices_.size(), 0, bytes.size()});
    slices_.push_back(std::as_bytes(std::span(bytes)));
  }
  return gridclock::Finish(merged_, /*streamed=*/true, slices_, std::move(ranges), has_data_);
}

absl::Status StreamRunDecoder::AddHeader(Slices message, const ByteRange& part) {
  // Parts that bring nothing could keep a stream open for ever.
  if (part.size == 0 && header_.messages_ > 0)
    return InvalidField("header", "want parts with fields in them, got an empty part");
  GC_ASSIGN_OR_RETURN(const Split split,
                      Splitter(message, WireReader(message, part), limits_.control_bytes).Run());
  header_.bytes_ += split.control.size();
  if (header_.bytes_ > limits_.header_bytes) {
    return TooLarge("the header of a StreamRun", header_.bytes_, "header_bytes",
                    limits_.header_bytes, "send tensors as chunks");
  }
  header_.data_bytes_ += split.data_bytes;
  GC_RETURN_IF_ERROR(CheckInlineBytes(header_.data_bytes_, limits_.inline_bytes));
  RunRequest parsed;
  GC_RETURN_IF_ERROR(ParseControl(split.control, &parsed));
  GC_RETURN_IF_ERROR(CheckCounts(parsed));
  header_.merged_.MergeFrom(parsed);
  GC_RETURN_IF_ERROR(CheckCounts(header_.merged_));
  for (const ByteRange& range : split.data) header_.data_.push_back(ToString(message, range));
  header_.has_data_.insert(header_.has_data_.end(), split.has_data.begin(), split.has_data.end());
  ++header_.messages_;
  return absl::OkStatus();
}

namespace {

absl::StatusOr<StreamChunk> DecodeChunk(Slices message, const ByteRange& part,
                                        std::uint64_t chunk_bytes) {
  WireReader reader(message, part);
  StreamChunk out;
  ByteRange name;
  while (!reader.done()) {
    std::uint32_t field = 0;
    WireType type;
    bool ok = reader.ReadTag(&field, &type);
    if (ok && field == v1::Chunk::kNameFieldNumber && type == WireType::kBytes) {
      ok = reader.ReadBytes(&name);
    } else if (ok && field == v1::Chunk::kOffsetFieldNumber && type == WireType::kVarint) {
      ok = reader.ReadVarint(&out.offset);
    } else if (ok && field == v1::Chunk::kDataFieldNumber && type == WireType::kBytes) {
      ok = reader.ReadBytes(&out.data);
    } else if (ok) {
      ok = reader.Skip(field, type);
    }
    if (!ok) return Unparsable(*v1::StreamRunRequest::descriptor(), WireReader(message));
  }
  if (out.data.size > chunk_bytes) {
    return TooLarge("chunk.data", out.data.size, "chunk_bytes", chunk_bytes,
                    "send it as several chunks");
  }
  if (name.size > kMaxName)
    return InvalidField("chunk.name",
                        absl::StrCat("want at most ", kMaxName, " bytes, got ", name.size));
  out.name = ToString(message, name);
  return out;
}

}  // namespace

absl::StatusOr<std::variant<StreamRunDecoder::HeaderPart, StreamChunk>> StreamRunDecoder::Decode(
    Slices message) {
  constexpr std::uint32_t kHeader = v1::StreamRunRequest::kHeaderFieldNumber;
  constexpr std::uint32_t kChunk = v1::StreamRunRequest::kChunkFieldNumber;
  WireReader reader(message);
  std::optional<std::pair<std::uint32_t, ByteRange>> part;
  while (!reader.done()) {
    std::uint32_t field = 0;
    WireType type;
    bool ok = reader.ReadTag(&field, &type);
    if (ok && type == WireType::kBytes && (field == kHeader || field == kChunk)) {
      if (part) return InvalidField("message", "want one of header, chunk; got more");
      part.emplace(field, ByteRange());
      ok = reader.ReadBytes(&part->second);
    } else if (ok) {
      ok = reader.Skip(field, type);
    }
    if (!ok) return Unparsable(*v1::StreamRunRequest::descriptor(), WireReader(message));
  }
  if (!part) return InvalidField("message", "want one of header, chunk; got none");
  if (part->first == kHeader) {
    GC_RETURN_IF_ERROR(AddHeader(message, part->second));
    return HeaderPart();
  }
  return DecodeChunk(message, part->second, limits_.chunk_bytes);
}

std::string EncodeSummaryField(const v1::RunSummary& summary) {
  return FrameField(v1::RunResponse::kSummaryFieldNumber, summary.SerializeAsString(), 0);
}

std::string EncodeOutputFrame(const OutputFrame& frame) {
  return FrameField(v1::RunResponse::kOutputsFieldNumber, OutputHead(*frame.output, frame.checksum),
                    frame.data_bytes);
}

std::string EncodeStreamOutput(const JobOutput& output, std::optional<std::uint64_t> checksum) {
  return FrameField(v1::StreamRunResponse::kOutputFieldNumber, OutputHead(output, checksum), 0);
}

std::string EncodeStreamSummary(const v1::RunSummary& summary) {
  return FrameField(v1::StreamRunResponse::kSummaryFieldNumber, summary.SerializeAsString(), 0);
}

std::string EncodeStreamChunkFrame(absl::string_view name, std::uint64_t offset,
                                   std::uint64_t data_bytes) {
  return FrameField(v1::StreamRunResponse::kChunkFieldNumber, ChunkHead(name, offset), data_bytes);
}

std::string EncodeUploadChunkFrame(absl::string_view name, std::uint64_t offset,
                                   std::uint64_t data_bytes) {
  return FrameField(v1::StreamRunRequest::kChunkFieldNumber, ChunkHead(name, offset), data_bytes);
}

}  // namespace gridclock
