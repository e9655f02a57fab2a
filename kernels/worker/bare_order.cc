#include "kernels/worker/bare_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "proto/types/made_input.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

// What the words say of a kernel's inputs and attributes.
struct Given {
  std::vector<NamedOperand> inputs;
  std::map<std::string, Generator> generators;  // By input.
  std::vector<NamedAttribute> attributes;
};

absl::Status AddInput(const OperandSpec& spec, absl::string_view text, Given* given) {
  GC_ASSIGN_OR_RETURN(const MadeInput made, ParseMadeInput(text));
  const auto [generator, is_new] = given->generators.emplace(spec.name, made.generator);
  if (is_new) {
    given->inputs.push_back({spec.name, {.is_list = spec.is_list, .tensors = {made.spec}}});
    return absl::OkStatus();
  }
  if (!spec.is_list) return absl::InvalidArgumentError("want one tensor, got two");
  if (!(generator->second == made.generator)) {
    return absl::InvalidArgumentError("the tensors of a list are made by one generator");
  }
  const auto named = [&](const NamedOperand& input) { return input.name == spec.name; };
  std::find_if(given->inputs.begin(), given->inputs.end(), named)
      ->value.tensors.push_back(made.spec);
  return absl::OkStatus();
}

absl::Status AddAttribute(const AttributeSpec& spec, absl::string_view text, Given* given) {
  GC_ASSIGN_OR_RETURN(AttributeValue value, ParseAttributeValue(spec, text));
  given->attributes.push_back({spec.name, std::move(value)});
  return absl::OkStatus();
}

std::string NamesOf(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const OperandSpec& input : spec.inputs) names.push_back(input.name);
  for (const AttributeSpec& attribute : spec.attributes) names.push_back(attribute.name);
  return names.empty() ? "it takes nothing" : "it has " + absl::StrJoin(names, ", ");
}

absl::Status AddWord(const KernelSpec& spec, absl::string_view word, Given* given) {
  const std::size_t equals = word.find('=');
  if (equals == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("want NAME=VALUE, got ", Quote(word)));
  }
  const absl::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
  for (const OperandSpec& input : spec.inputs) {
    if (name == input.name) return Annotate(AddInput(input, value, given), name);
  }
  for (const AttributeSpec& attribute : spec.attributes) {
    if (name == attribute.name) return AddAttribute(attribute, value, given);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", spec.name, "' has no ", Quote(name), "; ", NamesOf(spec)));
}

MemoryRange Take(const OperandValue& value, std::uint64_t* end) {
  const MemoryRange range{.offset = *end, .size = OperandBytes(value)};
  *end += (range.size + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  return range;
}

void AddInputs(const Binding& binding, const Given& given, std::uint64_t seed, BareOrder* out) {
  for (std::size_t i = 0; i < binding.inputs.size(); ++i) {
    Generator generator = given.generators.at(binding.spec->inputs[i].name);
    generator.seed = seed + i;
    WorkerOperand& input = out->order.inputs.emplace_back();
    input.value = binding.inputs[i];
    input.memory = Take(input.value, &out->bytes);
    input.generate = generator;
  }
}

void AddOutput(const OperandSpec& spec, std::optional<int> in_place_of, const Binding& binding,
               BareOrder* out) {
  WorkerOperand& output = out->order.outputs.emplace_back();
  output.value = binding.outputs[out->output_names.size()];
  output.memory = in_place_of ? out->order.inputs[static_cast<std::size_t>(*in_place_of)].memory
                              : Take(output.value, &out->bytes);
  output.checksum = true;
  output.in_place_of = in_place_of;
  out->output_names.push_back(spec.name);
}

void AddOutputs(const Binding& binding, BareOrder* out) {
  const KernelSpec& spec = *binding.spec;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (spec.inputs[i].inout) AddOutput(spec.inputs[i], static_cast<int>(i), binding, out);
  }
  for (const OperandSpec& output : spec.outputs) AddOutput(output, std::nullopt, binding, out);
}

absl::StatusOr<const KernelSpec*> FindKernel(const Registry& registry, absl::string_view name) {
  if (const RegisteredKernel* kernel = registry.Find(name)) return &kernel->spec;
  const auto add_name = [](std::string* out, const auto& kernel) { out->append(kernel.first); };
  return absl::NotFoundError(absl::StrCat("no kernel ", Quote(name), "; there are ",
                                          absl::StrJoin(registry.kernels(), ", ", add_name)));
}

}  // namespace

absl::StatusOr<BareOrder> MakeBareOrder(const Registry& registry, const BareCall& call) {
  if (call.words.empty()) {
    return absl::InvalidArgumentError(
        "want a kernel and its inputs as in square x=randn:f32[1024]");
  }
  GC_ASSIGN_OR_RETURN(const KernelSpec* const spec, FindKernel(registry, call.words[0]));
  const std::string where = absl::StrCat("kernel '", spec->name, "'");
  Given given;
  for (std::size_t i = 1; i < call.words.size(); ++i) {
    GC_RETURN_IF_ERROR(Annotate(AddWord(*spec, call.words[i], &given), where));
  }
  const auto binding = Bind(*spec, given.inputs, given.attributes);
  if (!binding.ok()) return Annotate(binding.status(), where);
  BareOrder out;
  out.order.kernel = spec->name;
  out.order.variant = call.variant;
  out.order.attributes = binding->attributes;
  AddInputs(*binding, given, call.seed, &out);
  AddOutputs(*binding, &out);
  return out;
}

}  // namespace gridclock
