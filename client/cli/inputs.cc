#include "client/cli/inputs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/names.h"
#include "client/cpp/npz.h"
#include "proto/types/made_input.h"

namespace gridclock::cli {
namespace {

// What stands behind an archive: "bf16", "name" or "name:bf16".
absl::Status ParseBehindArchive(absl::string_view text, Source* source) {
  source->as = ParseDType(text.substr(text.rfind(':') + 1));  // Without a colon npos + 1 is 0.
  const std::size_t colon = source->as.has_value() ? text.rfind(':') : text.size();
  if (colon == absl::string_view::npos) return absl::OkStatus();
  source->member = std::string(text.substr(0, colon));
  if (!source->member.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", source->path, ":", text,
                                                 "': which array? Say ", source->path, ":NAME, or ",
                                                 source->path, " for all"));
}

absl::Status ParseBehindFile(absl::string_view text, Source* source) {
  if (absl::EndsWith(source->path, ".npz")) return ParseBehindArchive(text, source);
  source->as = ParseDType(text);
  if (source->as.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", source->path, ":", text, "': ", NoSuchDType(text)));
}

// Splits "a.npy:bf16" behind the file's ending. Nullopt for what names no such file.
absl::StatusOr<std::optional<Source>> ParseFile(absl::string_view text) {
  for (const absl::string_view ending : {".npy", ".npz"}) {
    const std::size_t at = text.rfind(ending);
    if (at == absl::string_view::npos) continue;
    const absl::string_view rest = text.substr(at + ending.size());
    if (!rest.empty() && rest[0] != ':') continue;
    Source source;
    source.path = std::string(text.substr(0, at + ending.size()));
    if (!rest.empty()) GC_RETURN_IF_ERROR(ParseBehindFile(rest.substr(1), &source));
    return source;
  }
  return std::nullopt;
}

std::string ListOfNames(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const OperandSpec& input : spec.inputs) names.push_back(input.name);
  for (const AttributeSpec& attribute : spec.attributes) names.push_back(attribute.name);
  return names.empty() ? "it takes nothing" : "it has " + absl::StrJoin(names, ", ");
}

absl::Status AddSource(const std::string& name, const std::string& value, Words* words) {
  auto source = ParseSource(value);
  if (!source.ok()) return Annotate(source.status(), name);
  for (NamedSources& operand : words->operands) {
    if (operand.name != name) continue;
    operand.sources.push_back(*std::move(source));
    return absl::OkStatus();
  }
  words->operands.push_back({name, {*std::move(source)}});
  return absl::OkStatus();
}

absl::Status AddLoaded(LoadedTensor tensor, CallInput* input, Inputs* out) {
  input->value.tensors.push_back(std::move(tensor.spec));
  input->bytes.push_back(tensor.bytes);
  out->keepers.push_back(std::move(tensor.keeper));
  return absl::OkStatus();
}

absl::Status AddFile(const Source& source, CallInput* input, Inputs* out) {
  if (absl::EndsWith(source.path, ".npy")) {
    GC_ASSIGN_OR_RETURN(LoadedTensor tensor, LoadNpy(source.path, source.as));
    return AddLoaded(std::move(tensor), input, out);
  }
  if (!source.member.empty()) {
    GC_ASSIGN_OR_RETURN(LoadedTensor tensor, LoadNpzMember(source.path, source.member, source.as));
    return AddLoaded(std::move(tensor), input, out);
  }
  GC_ASSIGN_OR_RETURN(std::vector<NamedTensor> all, LoadNpz(source.path, source.as));
  for (NamedTensor& one : all) {
    GC_RETURN_IF_ERROR(AddLoaded(std::move(one.tensor), input, out));
  }
  return absl::OkStatus();
}

// Makes the values here, one tensor after the other, as the server would.
absl::Status MakeHere(const Generator& generator, const OperandValue& value, CallInput* input,
                      Inputs* out) {
  std::int64_t first = 0;
  for (const TensorSpec& spec : value.tensors) {
    GC_ASSIGN_OR_RETURN(const std::int64_t bytes, CheckedBytes(spec));
    GC_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(static_cast<std::uint64_t>(bytes)));
    Generate(generator, spec.dtype, first, buffer.span());
    first += Elements(spec.shape);
    const auto keeper = std::make_shared<Buffer>(std::move(buffer));
    GC_RETURN_IF_ERROR(
        AddLoaded({.spec = spec, .bytes = keeper->span(), .keeper = keeper}, input, out));
  }
  return absl::OkStatus();
}

absl::Status AddGenerated(Generator generator, OperandValue value, const InputOptions& options,
                          std::size_t index, CallInput* input, Inputs* out) {
  generator.seed = options.seed + index;
  for (const TensorSpec& tensor : value.tensors) {
    GC_RETURN_IF_ERROR(Validate(generator, tensor.dtype));
  }
  if (options.make_on == MakeOn::kClient) return MakeHere(generator, value, input, out);
  input->value = std::move(value);
  input->generator = generator;
  return absl::OkStatus();
}

// An operand of generators alone: its shape from the sources, or else from `solved`.
absl::Status AddMade(const OperandSpec& operand, const std::vector<Source>& sources,
                     const OperandValue* solved, const InputOptions& options, std::size_t index,
                     CallInput* input, Inputs* out) {
  OperandValue value{.is_list = operand.is_list, .tensors = {}};
  std::optional<Generator> generator;
  for (const Source& source : sources) {
    if (generator.has_value() && !(*generator == *source.generator)) {
      return UsageError("the tensors of a list are made by one generator");
    }
    generator = source.generator;
    if (source.spec.has_value()) value.tensors.push_back(*source.spec);
  }
  if (value.tensors.empty()) {
    if (solved == nullptr) {
      return UsageError(sources.empty()
                            ? absl::StrCat("missing, want ", ToText(operand), "; say ",
                                           operand.name, "=FILE.npy, or a shape, as in ",
                                           operand.name, "=randn:f32[1024]")
                            : std::string("which shape? Say it as in randn:f32[1024]"));
    }
    value = *solved;
  }
  if (value.tensors.size() < sources.size()) {
    return UsageError("give a shape with each generator or with none");
  }
  const Generator made = generator.value_or(DefaultGenerator(value.tensors[0].dtype));
  return AddGenerated(made, std::move(value), options, index, input, out);
}

absl::Status AddInput(const OperandSpec& operand, const std::vector<Source>& sources,
                      const OperandValue* solved, const InputOptions& options, std::size_t index,
                      Inputs* out) {
  CallInput input;
  input.name = operand.name;
  input.value.is_list = operand.is_list;
  const auto files = std::count_if(sources.begin(), sources.end(),
                                   [](const Source& source) { return !source.path.empty(); });
  if (files == 0) {
    GC_RETURN_IF_ERROR(AddMade(operand, sources, solved, options, index, &input, out));
  } else if (static_cast<std::size_t>(files) < sources.size()) {
    return absl::InvalidArgumentError("a list comes from files or from a generator, not from both");
  } else {
    for (const Source& source : sources) GC_RETURN_IF_ERROR(AddFile(source, &input, out));
  }
  if (!operand.is_list && input.value.tensors.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("one tensor wanted, got ", input.value.tensors.size()));
  }
  out->inputs.push_back(std::move(input));
  return absl::OkStatus();
}

constexpr absl::string_view kGenerators[] = {"zeros", "ones",    "full",   "arange",
                                             "randn", "uniform", "randint"};

bool IsFolder(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// What is wrong with a text that is neither a file nor a generator.
std::string WhyNoSource(absl::string_view text) {
  const absl::string_view word = text.substr(0, text.find(':'));
  const bool known =
      std::find(std::begin(kGenerators), std::end(kGenerators), word) != std::end(kGenerators);
  const std::size_t colon = text.rfind(':');
  if (known && colon != absl::string_view::npos && ParseDType(text.substr(colon + 1)).has_value()) {
    return absl::StrCat("'", text, "': which shape? Say it as in ", text, "[1024]");
  }
  if (IsFolder(std::string(text))) {
    return absl::StrCat("'", text, "' is a folder; want a .npy or .npz file");
  }
  if (!known && absl::StrContains(word, '.')) {
    return absl::StrCat("'", text,
                        "' is no .npy or .npz file, and no generator as randn:f32[1024]");
  }
  return absl::StrCat("no generator '", text.substr(0, text.find('[')),
                      "'; want FILE.npy, FILE.npz, or zeros, ones, full:V, arange, randn, ",
                      "uniform:A:B, randint:A:B as in randn:f32[1024]");
}

}  // namespace

bool NamesFile(absl::string_view text) {
  return absl::StrContains(text, ".npy") || absl::StrContains(text, ".npz");
}

absl::StatusOr<Source> ParseSource(absl::string_view text) {
  GC_ASSIGN_OR_RETURN(std::optional<Source> file, ParseFile(text));
  if (file.has_value()) return *std::move(file);
  Source source;
  const std::size_t bracket = text.find('[');
  absl::string_view generator = text;
  if (bracket != absl::string_view::npos) {
    const std::size_t colon = text.substr(0, bracket).rfind(':');
    // Without a colon the whole text is the spec: npos + 1 is 0.
    const absl::string_view dtype = text.substr(colon + 1, bracket - colon - 1);
    if (!ParseDType(dtype).has_value()) return absl::InvalidArgumentError(NoSuchDType(dtype));
    GC_ASSIGN_OR_RETURN(source.spec, ParseTensorSpec(text.substr(colon + 1)));
    if (colon == absl::string_view::npos) {
      source.generator = DefaultGenerator(source.spec->dtype);
      return source;
    }
    generator = text.substr(0, colon);
  }
  const auto parsed = ParseGenerator(generator);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(WhyNoSource(text));
  }
  source.generator = *parsed;
  return source;
}

absl::StatusOr<Words> SortWords(const KernelSpec& spec, const std::vector<std::string>& words) {
  Words out;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos) {
      const bool file = absl::StrContains(word, ".np") && !spec.inputs.empty();
      return absl::InvalidArgumentError(
          absl::StrCat("want NAME=VALUE, got '", word, "'",
                       file ? absl::StrCat("; ", spec.inputs[0].name, "=", word, "?") : ""));
    }
    const std::string name = word.substr(0, at), value = word.substr(at + 1);
    const auto named = [&](const auto& each) { return each.name == name; };
    const auto attribute = std::find_if(spec.attributes.begin(), spec.attributes.end(), named);
    if (std::any_of(spec.inputs.begin(), spec.inputs.end(), named)) {
      GC_RETURN_IF_ERROR(AddSource(name, value, &out));
    } else if (std::any_of(out.attributes.begin(), out.attributes.end(), named)) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is there twice"));
    } else if (attribute != spec.attributes.end()) {
      auto parsed = ParseAttributeValue(*attribute, value);
      if (!parsed.ok()) return Annotate(parsed.status(), name);
      out.attributes.push_back({name, *std::move(parsed)});
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("'", spec.name, "' has no '", name, "'; ", ListOfNames(spec)));
    }
  }
  return out;
}

KernelName ParseKernelName(absl::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == absl::string_view::npos) return {std::string(text), ""};
  return {std::string(text.substr(0, dot)), std::string(text.substr(dot + 1))};
}

absl::StatusOr<Inputs> MakeInputs(const KernelSpec& spec, const Words& words,
                                  const std::vector<NamedOperand>& shapes,
                                  const InputOptions& options) {
  Inputs out;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const OperandSpec& operand = spec.inputs[i];
    const auto named = [&](const auto& each) { return each.name == operand.name; };
    const auto given = std::find_if(words.operands.begin(), words.operands.end(), named);
    const auto solved = std::find_if(shapes.begin(), shapes.end(), named);
    const absl::Status status =
        AddInput(operand, given == words.operands.end() ? std::vector<Source>{} : given->sources,
                 solved == shapes.end() ? nullptr : &solved->value, options, i, &out);
    if (!status.ok()) return Annotate(status, absl::StrCat("input '", operand.name, "'"));
  }
  return out;
}

absl::Status WithConversion(const absl::Status& error, const RunCall& call) {
  const absl::string_view said = error.message();
  for (const CallInput& input : call.inputs) {
    if (input.bytes.empty() || !absl::StrContains(said, absl::StrCat("'", input.name, "': want"))) {
      continue;
    }
    const std::string got = absl::StrCat("got ", Name(input.value.tensors[0].dtype));
    if (!absl::StrContains(said, "f32") || !absl::EndsWith(said, got)) continue;
    return WithDetails(absl::Status(error.code(), absl::StrCat(said, "; convert it, e.g. ",
                                                               input.name, ".astype('f4')")),
                       DetailsOf(error));
  }
  return error;
}

}  // namespace gridclock::cli
