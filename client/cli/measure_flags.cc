#include "client/cli/measure_flags.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/format.h"
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

// The inputs that have a file or a generator with a shape.
std::set<std::string> Told(const Words& words) {
  std::set<std::string> out;
  for (const NamedSources& given : words.operands) {
    const Source& first = given.sources[0];
    if (!first.path.empty() || first.spec.has_value()) out.insert(given.name);
  }
  return out;
}

// What they are: "x comes from a.npy, which is f32[3,4]".
std::map<std::string, std::string> WhatTheyAre(const Words& words, const Inputs& inputs) {
  std::map<std::string, std::string> out;
  const std::set<std::string> told = Told(words);
  for (const NamedSources& given : words.operands) {
    const auto input = std::find_if(inputs.inputs.begin(), inputs.inputs.end(),
                                    [&](const CallInput& i) { return i.name == given.name; });
    if (told.count(given.name) == 0 || input == inputs.inputs.end()) continue;
    const std::string& path = given.sources[0].path;
    const std::string from =
        path.empty() ? std::string(" has a shape of its own") : absl::StrCat(" comes from ", path);
    const auto spec_text = [](std::string* text, const TensorSpec& spec) {
      absl::StrAppend(text, ToText(spec));
    };
    out[given.name] = absl::StrCat(given.name, from, ", which is ",
                                   absl::StrJoin(input->value.tensors, " ", spec_text));
  }
  return out;
}

absl::StatusOr<MadeCall> Make(const KernelSpec& spec, const CallFlags& flags, ShapeWishes wishes) {
  std::vector<std::string> rest;
  GC_RETURN_IF_ERROR(Sort(flags.words, &wishes, &rest));
  for (const std::string& size : flags.shapes) {
    if (ParseSize(size).ok()) GC_RETURN_IF_ERROR(AddShape(size, &wishes));  // Says what it lacks.
  }
  GC_RETURN_IF_ERROR(Sort(flags.shapes, &wishes, &rest));
  for (const std::string& text : flags.dtypes) GC_RETURN_IF_ERROR(AddDType(text, &wishes));
  MadeCall made;
  GC_ASSIGN_OR_RETURN(const Words words, SortWords(spec, rest));
  const std::set<std::string> told = Told(words);
  std::vector<NamedOperand> shapes;
  if (told.size() < spec.inputs.size()) {
    GC_ASSIGN_OR_RETURN(shapes, SolveShapes(spec, wishes, words.attributes, told));
  }
  const MakeOn make_on = flags.generate == "client" ? MakeOn::kClient : MakeOn::kServer;
  GC_ASSIGN_OR_RETURN(
      made.inputs,
      MakeInputs(spec, words, shapes, {.make_on = make_on, .seed = flags.seed.value_or(0)}));
  GC_RETURN_IF_ERROR(CheckWishes(spec, wishes, WhatTheyAre(words, made.inputs)));
  GC_ASSIGN_OR_RETURN(made.call.kernel_time_limit, ParseKernelLimit(flags.kernel_limit));
  made.call.kernel = spec.name;
  made.call.variant = ParseKernelName(flags.kernel).variant;
  made.call.device = flags.device;
  made.call.attributes = words.attributes;
  made.call.inputs = std::move(made.inputs.inputs);
  return made;
}

}  // namespace

std::vector<std::string> TensorWords(const CallFlags& flags) {
  std::vector<std::string> out;
  std::copy_if(flags.words.begin(), flags.words.end(), std::back_inserter(out),
               [](const std::string& word) { return !IsShapeName(word); });
  return out;
}

void DiscardOutputs(const KernelSpec& spec, RunCall* call) {
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout) call->outputs.push_back({input.name, Sink::kDiscard});
  }
  for (const OperandSpec& output : spec.outputs) {
    call->outputs.push_back({output.name, Sink::kDiscard});
  }
}

CLI::Validator Between(double low, double high) {
  const auto check = [low, high](const std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= low && value <= high) return "";
    return absl::StrCat("want ", low, " to ", high, ", got ", text);
  };
  return {check, ""};
}

void AddSeedFlag(CLI::App& app, std::optional<std::uint64_t>* seed) {
  // CLI11 by itself takes -1 and what is too large for the largest number.
  const auto check = [](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    if (absl::SimpleAtoi(text, &value)) return "";
    return absl::StrCat("want a whole number of 0 to 2^64 - 1, got ", text);
  };
  app.add_option("--seed", *seed)->check(CLI::Validator(check, ""));
}

void AddCallFlags(CLI::App& app, CallFlags* flags) {
  app.add_option("KERNEL", flags->kernel)->required();
  app.add_option("WORDS", flags->words);
  app.add_option("--shape", flags->shapes);
  app.add_option("--dtype", flags->dtypes)->allow_extra_args(false);
  app.add_option("--device", flags->device);
  app.add_option("--generate", flags->generate)->check(CLI::IsMember({"server", "client"}));
  AddSeedFlag(app, &flags->seed);
  app.add_option("--kernel-limit", flags->kernel_limit);
}

absl::Status CheckOneVariant(absl::string_view kernel, absl::string_view variant) {
  const bool of_file = kernel.find(':') != absl::string_view::npos;  // FILE.cu:ENTRY
  if (of_file && !variant.empty()) {
    return UsageError("--variant: code of your own has no variants");
  }
  const std::string named = of_file ? "" : ParseKernelName(kernel).variant;
  if (named.empty() || variant.empty() || named == variant) return absl::OkStatus();
  return UsageError(absl::StrCat("--variant: ", kernel, " names a variant already, got ", variant));
}

absl::StatusOr<MadeCall> MakeCall(const KernelSpec& spec, const CallFlags& flags,
                                  std::optional<std::int64_t> default_dim) {
  auto made = Make(spec, flags, {.shapes = {}, .dtypes = {}, .default_dim = default_dim});
  if (made.ok()) return made;
  return absl::IsInvalidArgument(made.status()) ? UsageError(made.status().message())
                                                : made.status();
}

}  // namespace gridclock::cli
