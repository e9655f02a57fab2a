#include "server/core/reference.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "server/core/admission.h"

namespace gridclock {
namespace {

std::string ListText(const std::vector<OperandValue>& values) {
  std::string out;
  for (const OperandValue& value : values) {
    absl::StrAppend(&out, out.empty() ? "" : ", ");
    if (value.is_list)
      absl::StrAppend(&out, "a list of ", value.tensors.size(), " tensors");
    else
      absl::StrAppend(&out, ToText(value.tensors[0]));
  }
  return out;
}

// Those that were given for it, then those given for the program of the same names. The program's
// defaults are its author's, who must not say what it is held against.
std::vector<NamedAttribute> AttributesFor(const KernelSpec& spec, const JobRequest& request) {
  std::vector<NamedAttribute> out = request.reference->attributes;
  for (const AttributeSpec& attribute : spec.attributes) {
    const auto named = [&](const auto& other) { return other.name == attribute.name; };
    if (std::any_of(out.begin(), out.end(), named)) continue;
    const auto given = std::find_if(request.attributes.begin(), request.attributes.end(), named);
    if (given != request.attributes.end()) out.push_back(*given);
  }
  return out;
}

// The program's inputs as those of the words `spec`, which must give what the program gives.
absl::StatusOr<Binding> BindWords(const KernelSpec& spec, const JobRequest& request,
                                  const Binding& program, absl::string_view field) {
  if (spec.inputs.size() != program.inputs.size()) {
    return InvalidField(field, absl::StrCat("'", spec.name, "' has ", spec.inputs.size(),
                                            " inputs; the program has ", program.inputs.size()));
  }
  std::vector<NamedOperand> operands;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    operands.push_back({spec.inputs[i].name, program.inputs[i]});
  }
  auto binding = Bind(spec, operands, AttributesFor(spec, request));
  if (!binding.ok()) {
    const auto status = Annotate(binding.status(), absl::StrCat("reference '", spec.name, "'"));
    return WithField(WithReasonIfNone(status, "SIGNATURE_MISMATCH"), "reference");
  }
  if (binding->outputs == program.outputs) return binding;
  return InvalidField(
      field, absl::StrCat("'", spec.name, "' gives ", ListText(binding->outputs),
                          " of these inputs; the program gives ", ListText(program.outputs)));
}

absl::Status TakeKernel(const JobRequest& request, const Binding& program, const KernelTable& table,
                        JobCheck& check) {
  constexpr absl::string_view kField = "reference.kernel";
  GC_RETURN_IF_ERROR(CheckName(request.reference->kernel, kField));
  const auto found = table.Find(request.reference->kernel);
  if (!found.ok()) return WithField(found.status(), kField);
  const KernelSpec& spec = **found;
  GC_ASSIGN_OR_RETURN(const Binding binding, BindWords(spec, request, program, kField));
  check.kernel = spec.name;
  check.attributes = binding.attributes;
  check.bytes = binding.bytes;
  check.flops = binding.flops;
  return absl::OkStatus();
}

// Its outputs as its own words have them: `inout` inputs first, in their place.
std::vector<JobOutput> OutputsOf(const KernelSpec& spec, const Binding& binding) {
  std::vector<JobOutput> out;
  const auto add = [&](const std::string& name) -> JobOutput& {
    const OperandValue& value = binding.outputs[out.size()];
    return out.emplace_back(JobOutput{
        .name = name, .value = value, .sink = SinkKind::kDiscard, .memory = {}, .in_place_of = {}});
  };
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].inout) add(spec.inputs[i].name).in_place_of = static_cast<int>(i);
  }
  for (const OperandSpec& output : spec.outputs) add(output.name);
  return out;
}

absl::Status TakeProgram(const JobRequest& request, const Binding& program,
                         std::shared_ptr<const JobProgram> reference, JobCheck& check) {
  const KernelSpec& spec = reference->program.words;
  GC_ASSIGN_OR_RETURN(const Binding binding,
                      BindWords(spec, request, program, "reference.program"));
  check.attributes = binding.attributes;
  check.bytes = binding.bytes;
  check.flops = binding.flops;
  check.outputs_of = OutputsOf(spec, binding);
  check.terms = std::max<std::int64_t>(1, request.reference->terms);
  check.program = std::move(reference);
  return absl::OkStatus();
}

absl::Status TakeExpected(const JobRequest& request, const Job& job, JobCheck& check) {
  if (!request.reference->attributes.empty()) {
    return InvalidField("reference.attributes", "want none beside expected values");
  }
  check.terms = std::max<std::int64_t>(1, request.reference->terms);
  std::int64_t written = 0;
  for (const JobOutput& output : job.outputs) {
    const std::string name = ExpectedName(output);
    const auto named = [&](const InputRequest& input) { return input.operand.name == name; };
    const auto found = std::find_if(request.inputs.begin(), request.inputs.end(), named);
    if (found == request.inputs.end()) {
      return InvalidField("reference",
                          absl::StrCat("want a kernel, or an input '", name, "' with what output '",
                                       output.name, "' shall be"));
    }
    if (found->operand.value != output.value) {
      return InvalidField(absl::StrCat("inputs[", found - request.inputs.begin(), "].spec"),
                          absl::StrCat("'", name, "': want ", ListText({output.value}), ", got ",
                                       ListText({found->operand.value})));
    }
    // What is given back in its place may be right as it was.
    if (!output.in_place_of) {
      written += static_cast<std::int64_t>(WireBytes(output.value));
    }
    check.expected.push_back({.value = found->operand.value,
                              .source = found->source,
                              .generator = found->generator,
                              .memory = {}});
    if (found->source != SourceKind::kGenerate) continue;
    return InvalidField(absl::StrCat("inputs[", found - request.inputs.begin(), "].source"),
                        "want expected values sent, inline or as a stream");
  }
  check.bytes = std::max(job.bytes, written);
  check.flops = job.flops;
  return absl::OkStatus();
}

// Every input that is called like an expected output must be one, and the only one. `sent`:
// expected values are what the outputs are held against.
absl::Status CheckNames(const JobRequest& request, const Job& job, bool sent) {
  std::set<std::string> known;
  for (const JobOutput& output : job.outputs) known.insert(ExpectedName(output));
  std::set<absl::string_view> seen;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::string& name = request.inputs[i].operand.name;
    if (!absl::StartsWith(name, kExpectedPrefix)) continue;
    if (sent && known.contains(name) && seen.insert(name).second) continue;
    return InvalidField(absl::StrCat("inputs[", i, "].name"),
                        absl::StrCat("'", name, "': ",
                                     !sent ? "want no expected values beside a kernel or program"
                                     : known.contains(name) ? "is given twice, want each once"
                                                            : "the program has no such output"));
  }
  return absl::OkStatus();
}

// Sizes of outputs follow from the words and are bounded by nothing so far.
absl::Status CheckSizes(const Job& job) {
  constexpr std::int64_t kMost = std::int64_t{1} << 50;
  std::int64_t total = 0;
  for (const JobOutput& output : job.outputs) {
    for (const TensorSpec& tensor : output.value.tensors) {
      GC_ASSIGN_OR_RETURN(const std::int64_t bytes, CheckedBytes(tensor));
      if (bytes <= kMost && (total += bytes) <= kMost) continue;
      return WithReason(absl::ResourceExhaustedError(
                            absl::StrCat("output '", output.name, "' takes ", bytes, " bytes")),
                        "TOO_LARGE");
    }
  }
  return absl::OkStatus();
}

bool SomeAreFresh(const Job& job) {
  return std::any_of(job.inputs.begin(), job.inputs.end(), [](const JobInput& input) {
    return input.source == SourceKind::kGenerate && MadeFromSeed(input.generator);
  });
}

// A quarter of what the client may hold, so that others of its calls still find room.
std::int64_t LaunchesThatFit(const Limits& limits, std::uint64_t launch_bytes) {
  const double bytes = std::min(kMostCheckedBytes, limits.client_arena_bytes / 4);
  if (launch_bytes == 0) return kMostCheckedLaunches;
  const auto fit = static_cast<std::int64_t>(bytes / static_cast<double>(launch_bytes));
  return std::clamp<std::int64_t>(fit, 1, kMostCheckedLaunches);
}

absl::Status LimitLaunches(const Limits& limits, JobCheck& check, Job& job) {
  const std::int64_t last = check.fresh ? 1 : 0;
  const int copies = check.program != nullptr ? 2 : 1;
  const std::int64_t most = LaunchesThatFit(limits, check.launch_bytes * copies);
  if (!job.measure) {
    check.most_launches = 1 + last;
    return absl::OkStatus();
  }
  MeasureOptions& measure = *job.measure;
  if (measure.method == Method::kBackToBack) {
    check.most_launches = 1;
    return absl::OkStatus();
  }
  if (measure.schedule) {
    const std::int64_t samples = measure.schedule->active * measure.schedule->repeat;
    if (samples > most) {
      return InvalidField(
          "measure.schedule",
          absl::StrCat("at most ", most, " launches of this call can be verified, got ", samples,
                       " samples"));
    }
    check.most_launches = samples + last;
    return absl::OkStatus();
  }
  measure.max_samples = measure.max_samples == 0 ? most : std::min(measure.max_samples, most);
  measure.min_samples = std::min(measure.min_samples, measure.max_samples);
  check.most_launches = measure.max_samples + last;
  return absl::OkStatus();
}

}  // namespace

bool IsExpected(const JobRequest& request, absl::string_view name) {
  return request.reference && absl::StartsWith(name, kExpectedPrefix);
}

absl::StatusOr<Binding> BindReference(const Job& job) {
  const KernelSpec& spec = job.check->program->program.words;
  std::vector<NamedOperand> operands;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    operands.push_back({spec.inputs[i].name, job.inputs[i].value});
  }
  std::vector<NamedAttribute> attributes;
  for (std::size_t i = 0; i < spec.attributes.size(); ++i) {
    attributes.push_back({spec.attributes[i].name, job.check->attributes[i]});
  }
  return Bind(spec, operands, attributes);
}

absl::Status TakeReference(const JobRequest& request, const Binding& binding,
                           const KernelTable& table, const Limits& limits,
                           std::shared_ptr<const JobProgram> reference, Job& job) {
  JobCheck check;
  const bool of_kernel = !request.reference->kernel.empty();
  if (of_kernel && reference != nullptr) {
    return InvalidField("reference.kernel", "want none beside reference.program");
  }
  GC_RETURN_IF_ERROR(CheckNames(request, job, !of_kernel && reference == nullptr));
  GC_RETURN_IF_ERROR(reference != nullptr
                         ? TakeProgram(request, binding, std::move(reference), check)
                     : of_kernel ? TakeKernel(request, binding, table, check)
                                 : TakeExpected(request, job, check));
  job.bytes = check.bytes;
  job.flops = check.flops;
  // Expected values are those of the submitted inputs.
  check.fresh = (of_kernel || check.program != nullptr) && SomeAreFresh(job);
  GC_RETURN_IF_ERROR(CheckSizes(job));
  check.launch_bytes = OutputsBytes(job.outputs, job.outputs.size());
  GC_RETURN_IF_ERROR(LimitLaunches(limits, check, job));
  job.check = std::move(check);
  return absl::OkStatus();
}

}  // namespace gridclock
