#include "server/core/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/units.h"
#include "proto/types/quote.h"
#include "server/core/placement.h"
#include "server/core/reference.h"

namespace gridclock {
namespace {

constexpr std::size_t kMaxName = 128;

std::string Field(absl::string_view list, std::size_t index, absl::string_view member) {
  return absl::StrCat(list, "[", index, "]", member);
}

bool IsName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxName) return false;
  if (!absl::ascii_isalpha(name[0]) && name[0] != '_') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
  });
}

}  // namespace

absl::Status CheckName(absl::string_view name, absl::string_view field) {
  if (IsName(name)) return absl::OkStatus();
  return InvalidField(
      field, absl::StrCat("want a name like [A-Za-z_][A-Za-z0-9_.-]{0,127}, got ", Quote(name)));
}

namespace {

// In lists the path is made only for a name that is wrong: this runs for every call.
absl::Status CheckListedName(absl::string_view name, absl::string_view list, std::size_t index,
                             absl::string_view member) {
  return IsName(name) ? absl::OkStatus() : CheckName(name, Field(list, index, member));
}

absl::Status CheckDeviceName(absl::string_view device) {
  const auto colon = device.find(':');
  const absl::string_view index = colon == absl::string_view::npos ? "0" : device.substr(colon + 1);
  const bool digits = !index.empty() && std::all_of(index.begin(), index.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  if (device.empty() || (IsName(device.substr(0, colon)) && digits && index.size() <= 9)) {
    return absl::OkStatus();
  }
  return InvalidField("device",
                      absl::StrCat("want a device like 'cpu' or 'cuda:0', got ", Quote(device)));
}

// A program is no kernel of the catalogue, and has no variants.
absl::Status CheckKernelNames(const JobRequest& request) {
  if (!request.program) {
    GC_RETURN_IF_ERROR(CheckName(request.kernel, "kernel"));
    return request.variant.empty() ? absl::OkStatus() : CheckName(request.variant, "variant");
  }
  for (const auto& [field, text] :
       {std::pair("kernel", &request.kernel), {"variant", &request.variant}}) {
    if (text->empty()) continue;
    return InvalidField(field, absl::StrCat("want none beside a program, got ", Quote(*text)));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const JobRequest& request) {
  GC_RETURN_IF_ERROR(CheckKernelNames(request));
  GC_RETURN_IF_ERROR(CheckDeviceName(request.device));
  GC_RETURN_IF_ERROR(CheckRequestId(request.request_id));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    GC_RETURN_IF_ERROR(CheckListedName(request.inputs[i].operand.name, "inputs", i, ".name"));
  }
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    GC_RETURN_IF_ERROR(CheckListedName(request.outputs[i].name, "outputs", i, ".name"));
  }
  for (std::size_t i = 0; i < request.in_place.size(); ++i) {
    GC_RETURN_IF_ERROR(CheckListedName(request.in_place[i], "in_place", i, ""));
  }
  for (std::size_t i = 0; i < request.attributes.size(); ++i) {
    const std::string& name = request.attributes[i].name;
    if (!IsName(name)) return CheckName(name, absl::StrCat("attributes.", Escape(name)));
  }
  return absl::OkStatus();
}

absl::Status CheckShapes(const OperandValue& value, std::size_t input) {
  std::int64_t total = 0;
  for (const TensorSpec& tensor : value.tensors) {
    const auto bytes = CheckedBytes(tensor);
    if (!bytes.ok())
      return InvalidField(Field("inputs", input, ".spec.dims"), bytes.status().message());
    constexpr auto kPadding = static_cast<std::int64_t>(kTensorAlignment);
    if (__builtin_add_overflow(total, *bytes, &total) ||
        __builtin_add_overflow(total, kPadding, &total)) {
      return InvalidField(
          Field("inputs", input, ".spec.dims"),
          "element count overflows: the tensors of the list have more than 2^63-1 bytes");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSource(const JobRequest& request, std::size_t index) {
  const InputRequest& input = request.inputs[index];
  switch (input.source) {
    case SourceKind::kInline: {
      const std::uint64_t want = WireBytes(input.operand.value);
      if (input.inline_bytes == want) return absl::OkStatus();
      return InvalidField(Field("inputs", index, ".data"),
                          absl::StrCat("expected ", want, " bytes, got ", input.inline_bytes));
    }
    case SourceKind::kStream:
      if (request.streamed) return absl::OkStatus();
      return InvalidField(Field("inputs", index, ".source"),
                          "want inline or generate of a Run, got stream, which is for StreamRun");
    case SourceKind::kGenerate:
      for (const TensorSpec& tensor : input.operand.value.tensors) {
        if (const auto status = Validate(input.generator, tensor.dtype); !status.ok()) {
          return InvalidField(Field("inputs", index, ".generate"), status.message());
        }
      }
      return absl::OkStatus();
  }
  return InvalidField(Field("inputs", index, ".source"),
                      "want one of inline, stream, generate, got none");
}

// Clients that may choose come back with a stream.
absl::Status NotInline(absl::string_view field, absl::string_view what, const Limits& limits,
                       absl::string_view advice) {
  return WithReason(
      InvalidField(
          field, absl::StrCat(what, ", over the ", static_cast<std::uint64_t>(limits.inline_bytes),
                              " of a message; ", advice, " by StreamRun")),
      "USE_STREAM");
}

absl::Status CheckInputs(const JobRequest& request, const Limits& limits) {
  std::uint64_t inline_bytes = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    GC_RETURN_IF_ERROR(CheckShapes(request.inputs[i].operand.value, i));
    GC_RETURN_IF_ERROR(CheckSource(request, i));
    if (request.inputs[i].source == SourceKind::kInline) {
      inline_bytes += request.inputs[i].inline_bytes;
    }
  }
  if (static_cast<double>(inline_bytes) <= limits.inline_bytes) return absl::OkStatus();
  return NotInline("inputs", absl::StrCat("inline tensors have ", inline_bytes, " bytes"), limits,
                   "send them as chunks");
}

absl::StatusOr<Binding> BindRequest(const KernelSpec& spec, const JobRequest& request) {
  std::vector<NamedOperand> operands;
  operands.reserve(request.inputs.size());
  for (const InputRequest& input : request.inputs) {
    if (!IsExpected(request, input.operand.name)) operands.push_back(input.operand);
  }
  auto binding = Bind(spec, operands, request.attributes);
  if (binding.ok()) return binding;
  return WithReasonIfNone(Annotate(binding.status(), absl::StrCat("kernel '", spec.name, "'")),
                          "SIGNATURE_MISMATCH");
}

// The name of each output in the order of Binding::outputs: `inout` inputs, then outputs proper.
std::vector<const OperandSpec*> OutputSpecs(const KernelSpec& spec) {
  std::vector<const OperandSpec*> all;
  all.reserve(spec.inputs.size() + spec.outputs.size());
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout) all.push_back(&input);
  }
  for (const OperandSpec& output : spec.outputs) all.push_back(&output);
  return all;
}

int InputIndex(const KernelSpec& spec, absl::string_view name) {
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

void FillInputs(const KernelSpec& spec, const JobRequest& request, const Binding& binding,
                Job& job) {
  job.inputs.resize(spec.inputs.size());
  for (const InputRequest& input : request.inputs) {
    if (IsExpected(request, input.operand.name)) continue;
    const int at = InputIndex(spec, input.operand.name);
    job.inputs[at].source = input.source;
    job.inputs[at].generator = input.generator;
  }
  for (std::size_t i = 0; i < job.inputs.size(); ++i) job.inputs[i].value = binding.inputs[i];
}

void FillOutputs(const KernelSpec& spec, const JobRequest& request, const Binding& binding,
                 Job& job) {
  const std::vector<const OperandSpec*> specs = OutputSpecs(spec);
  const SinkKind returned = request.streamed ? SinkKind::kStream : SinkKind::kInline;
  job.outputs.reserve(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    JobOutput& output = job.outputs.emplace_back();
    output.name = specs[i]->name;
    output.value = binding.outputs[i];
    output.sink = returned;
    if (specs[i]->inout) output.in_place_of = InputIndex(spec, output.name);
  }
}

std::string OutputNames(const Job& job) {
  return absl::StrJoin(job.outputs, ", ", [](std::string* out, const JobOutput& output) {
    absl::StrAppend(out, "'", output.name, "'");
  });
}

JobOutput* FindOutput(Job& job, absl::string_view name) {
  for (JobOutput& output : job.outputs) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

absl::Status TakeSinks(const JobRequest& request, Job& job) {
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const OutputRequest& wanted = request.outputs[i];
    JobOutput* output = FindOutput(job, wanted.name);
    if (output == nullptr) {
      return InvalidField(Field("outputs", i, ".name"),
                          absl::StrCat("want one of the outputs [", OutputNames(job),
                                       "] of kernel '", job.kernel, "', got ", Quote(wanted.name)));
    }
    const auto before = request.outputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(request.outputs.begin(), before,
                    [&](const OutputRequest& other) { return other.name == wanted.name; })) {
      return InvalidField(Field("outputs", i, ".name"), absl::StrCat("want each output once, got ",
                                                                     Quote(wanted.name), " again"));
    }
    if (wanted.sink == SinkKind::kStream && !request.streamed) {
      return InvalidField(
          Field("outputs", i, ".sink"),
          "want RETURN, DISCARD or CHECKSUM of a Run, got chunks, which StreamRun returns");
    }
    const bool kept = wanted.sink == SinkKind::kDiscard || wanted.sink == SinkKind::kChecksum;
    if (kept) output->sink = wanted.sink;
  }
  return absl::OkStatus();
}

absl::Status PutInPlace(const KernelSpec& spec, const std::string& name, const std::string& field,
                        Job& job) {
  JobOutput* output = FindOutput(job, name);
  const auto words = std::find_if(spec.outputs.begin(), spec.outputs.end(),
                                  [&](const OperandSpec& o) { return o.name == name; });
  if (output == nullptr || words == spec.outputs.end() || words->over.empty()) {
    return InvalidField(field, absl::StrCat("want an output that the words of '", spec.name,
                                            "' allow in place (over an input), got ", Quote(name)));
  }
  const int over = InputIndex(spec, words->over);
  const bool taken = std::any_of(job.outputs.begin(), job.outputs.end(),
                                 [&](const JobOutput& o) { return o.in_place_of == over; });
  if (taken)
    return InvalidField(field, absl::StrCat("input '", words->over, "' is overwritten already"));
  if (job.inputs[over].value != output->value) {
    return InvalidField(field,
                        absl::StrCat("want output '", name, "' of the dtype and shape of input '",
                                     words->over, "' to work in its place"));
  }
  output->in_place_of = over;
  return absl::OkStatus();
}

absl::Status TakeInPlace(const KernelSpec& spec, const JobRequest& request, Job& job) {
  for (std::size_t i = 0; i < request.in_place.size(); ++i) {
    GC_RETURN_IF_ERROR(PutInPlace(spec, request.in_place[i], Field("in_place", i, ""), job));
  }
  return absl::OkStatus();
}

absl::Status CheckInlineOutputs(const Limits& limits, const Job& job) {
  std::uint64_t bytes = 0;
  for (const JobOutput& output : job.outputs) {
    if (output.sink == SinkKind::kInline) bytes += WireBytes(output.value);
  }
  if (static_cast<double>(bytes) <= limits.inline_bytes) return absl::OkStatus();
  return NotInline("outputs", absl::StrCat("the outputs have ", bytes, " bytes"), limits,
                   "get them");
}

// A call that asks for a long measurement asks for its kernel time too.
absl::StatusOr<absl::Duration> KernelTime(const JobRequest& request, const Limits& limits) {
  const bool own_bound =
      request.program && limits.submitted_kernel_seconds < limits.max_kernel_seconds;
  const double seconds = own_bound ? limits.submitted_kernel_seconds : limits.max_kernel_seconds;
  const absl::Duration most = absl::Seconds(seconds);
  const absl::Duration asked = request.kernel_time_limit;
  const absl::string_view whose = request.program ? " for submitted code" : "";
  if (asked < absl::ZeroDuration() || asked > most) {
    return WithDetails(
        InvalidField("kernel_time_limit_seconds",
                     absl::StrCat("want at most ", FormatPlain(seconds), whose,
                                  ", or 0 for the server's default, got ",
                                  FormatPlain(absl::ToDoubleSeconds(asked)))),
        {.reason = "BAD_VALUE",
         .field = "kernel_time_limit_seconds",
         .retry_after = std::nullopt,
         .metadata = {{"limit", own_bound ? "submitted_kernel_seconds" : "max_kernel_seconds"},
                      {"value", FormatPlain(seconds)}}});
  }
  if (request.measure && request.measure->budget > most) {
    return InvalidField(
        "measure.budget_seconds",
        absl::StrCat("want at most ", FormatPlain(seconds), whose, ", got ",
                     FormatPlain(absl::ToDoubleSeconds(request.measure->budget)), "; the server's ",
                     own_bound ? "--limit-submitted-kernel-seconds" : "--limit-max-kernel-seconds",
                     " sets it"));
  }
  if (asked > absl::ZeroDuration()) return asked;
  absl::Duration limit = absl::Seconds(limits.kernel_seconds);
  if (request.measure) {
    limit = std::max(limit, request.measure->budget + request.measure->warmup_limit);
  }
  // It bounds each launch too, which no warm-up may make longer than the server allows.
  return std::min(limit, most);
}

absl::Status CheckVerify(const JobRequest& request, const Job& job) {
  const bool checked = request.verify && request.program;
  if (request.reference && !checked) {
    return InvalidField("reference", "want none but of a program with verify");
  }
  if (checked && !request.reference) {
    return InvalidField("reference",
                        "want what a program that is verified is compared with: a kernel of the "
                        "catalogue, or expected values");
  }
  if (!request.verify || !job.outputs.empty()) return absl::OkStatus();
  return InvalidField(
      "verify", absl::StrCat("kernel '", job.kernel, "' has no outputs that could be compared"));
}

absl::Status CheckGuestMemory(const Limits& limits, const Job& job) {
  const auto bytes = static_cast<double>(GuestBytes(job));
  if (job.program == nullptr || limits.guest_bytes == 0 || bytes <= limits.guest_bytes) {
    return absl::OkStatus();
  }
  const std::string most = absl::StrCat(static_cast<std::uint64_t>(limits.guest_bytes));
  return WithDetails(
      absl::ResourceExhaustedError(
          absl::StrCat("this call with its outputs needs ", GuestBytes(job),
                       " bytes; the limit guest_bytes of submitted code is ", most)),
      {.reason = "TOO_LARGE",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {
           {"limit", "guest_bytes"}, {"value", most}, {"needed", absl::StrCat(GuestBytes(job))}}});
}

void FillCall(const JobRequest& request, const Binding& binding, Job& job) {
  job.kernel = binding.spec->name;
  job.request_id = request.request_id;
  job.principal = request.principal;
  job.attributes = binding.attributes;
  job.measure = request.measure;
  job.verify = request.verify;
  job.streamed = request.streamed;
  job.trace = request.trace;
  job.flops = binding.flops;
  job.bytes = binding.bytes;
  job.arrived = request.arrived;
  job.deadline = request.deadline;
}

}  // namespace

absl::Status CheckRequestId(absl::string_view id) {
  const bool printable =
      std::all_of(id.begin(), id.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (id.size() <= kMaxName && printable) return absl::OkStatus();
  return InvalidField("request_id",
                      absl::StrCat("want at most ", kMaxName, " printable characters, got ",
                                   id.size(), ": ", Quote(id)));
}

absl::StatusOr<Job> Admit(const JobRequest& request, const KernelTable& table, const Limits& limits,
                          const std::function<int(absl::string_view device)>& depth,
                          std::shared_ptr<const JobProgram> program,
                          std::shared_ptr<const JobProgram> reference) {
  GC_RETURN_IF_ERROR(CheckNames(request));
  std::shared_ptr<const KernelSpec> spec;
  if (program != nullptr) {
    spec = {program, &program->program.words};
  } else {
    GC_ASSIGN_OR_RETURN(spec, table.Find(request.kernel));
  }
  GC_RETURN_IF_ERROR(CheckInputs(request, limits));
  GC_ASSIGN_OR_RETURN(const Binding binding, BindRequest(*spec, request));

  Job job;
  job.program = std::move(program);
  FillCall(request, binding, job);
  if (job.measure) GC_RETURN_IF_ERROR(Validate(*job.measure));
  GC_ASSIGN_OR_RETURN(job.kernel_time_limit, KernelTime(request, limits));
  FillInputs(*spec, request, binding, job);
  FillOutputs(*spec, request, binding, job);
  GC_RETURN_IF_ERROR(TakeSinks(request, job));
  GC_RETURN_IF_ERROR(TakeInPlace(*spec, request, job));
  GC_RETURN_IF_ERROR(CheckVerify(request, job));
  if (request.reference) {
    GC_RETURN_IF_ERROR(TakeReference(request, binding, table, limits, std::move(reference), job));
  }
  GC_ASSIGN_OR_RETURN(Placement place,
                      Place(job, request.device, request.variant, binding, table, depth));
  job.device = std::move(place.device);
  job.variant = std::move(place.variant);
  job.variant_named = !request.variant.empty();
  job.local_bytes = place.local_bytes;
  GC_RETURN_IF_ERROR(LayOut(*spec, limits, place.host_memory, job));
  GC_RETURN_IF_ERROR(CheckGuestMemory(limits, job));
  GC_RETURN_IF_ERROR(CheckInlineOutputs(limits, job));
  return job;
}

}  // namespace gridclock
