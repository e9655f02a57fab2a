#include "client/cli/measure_flags.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/shapes.h"

namespace gridclock::cli {
namespace {

// Dimensions and runs begin with a capital or '*', operands and attributes with a small letter: so
// `--shape N=8 axis=1` cannot be misread.
bool IsShapeName(const std::string& word) {
  return !word.empty() && (word[0] == '*' || absl::ascii_isupper(word[0]));
}

absl::Status Sort(const std::vector<std::string>& from, ShapeWishes* wishes,
                  std::vector<std::string>* words) {
  for (const std::string& word : from) {
    if (IsShapeName(word)) {
      GC_RETURN_IF_ERROR(AddShape(word, wishes));
    } else {
      words->push_back(word);
    }
  }
  return absl::OkStatus();
}

// Shapes are needed where an operand has neither a file nor a generator with a shape.
bool NeedsShapes(const KernelSpec& spec, const Words& words) {
  for (const OperandSpec& input : spec.inputs) {
    bool told = false;
    for (const NamedSources& given : words.operands) {
      const Source& first = given.sources[0];
      told |= given.name == input.name && (!first.path.empty() || first.spec.has_value());
    }
    if (!told) return true;
  }
  return false;
}

}  // namespace

void AddCallFlags(CLI::App& app, CallFlags* flags) {
  app.add_option("KERNEL", flags->kernel)->required();
  app.add_option("WORDS", flags->words);
  app.add_option("--shape", flags->shapes);
  app.add_option("--dtype", flags->dtypes);
  app.add_option("--device", flags->device);
  app.add_option("--generate", flags->generate)->check(CLI::IsMember({"server", "client"}));
  app.add_option("--seed", flags->seed);
}

absl::StatusOr<MadeCall> MakeCall(const KernelSpec& spec, const CallFlags& flags,
                                  std::optional<std::int64_t> default_dim) {
  const auto make = [&]() -> absl::StatusOr<MadeCall> {
    ShapeWishes wishes{.shapes = {}, .dtypes = {}, .default_dim = default_dim};
    std::vector<std::string> rest;
    GC_RETURN_IF_ERROR(Sort(flags.words, &wishes, &rest));
    GC_RETURN_IF_ERROR(Sort(flags.shapes, &wishes, &rest));
    for (const std::string& text : flags.dtypes) GC_RETURN_IF_ERROR(AddDType(text, &wishes));
    MadeCall made;
    GC_ASSIGN_OR_RETURN(const Words words, SortWords(spec, rest));
    std::vector<NamedOperand> shapes;
    if (NeedsShapes(spec, words)) {
      GC_ASSIGN_OR_RETURN(shapes, SolveShapes(spec, wishes, words.attributes));
    }
    const MakeOn make_on = flags.generate == "client" ? MakeOn::kClient : MakeOn::kServer;
    GC_ASSIGN_OR_RETURN(made.inputs,
                        MakeInputs(spec, words, shapes, {.make_on = make_on, .seed = flags.seed}));
    made.call.kernel = spec.name;
    made.call.variant = ParseKernelName(flags.kernel).variant;
    made.call.device = flags.device;
    made.call.attributes = words.attributes;
    made.call.inputs = std::move(made.inputs.inputs);
    return made;
  };
  auto made = make();
  if (made.ok()) return made;
  return absl::IsInvalidArgument(made.status()) ? UsageError(made.status().message())
                                                : made.status();
}

}  // namespace gridclock::cli
