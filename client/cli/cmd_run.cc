// run: one call of a kernel, of the catalogue or of a file, on tensors from files or generators.
#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/inputs.h"
#include "client/cli/json.h"
#include "client/cli/measure_flags.h"
#include "client/cli/progress.h"
#include "client/cli/show.h"
#include "client/cli/subject.h"
#include "client/cli/verify_flags.h"
#include "client/cpp/file.h"
#include "client/cpp/npz.h"

namespace gridclock::cli {
namespace {

struct RunOptions {
  CodeFlags code;
  std::string kernel, variant, device, generate = "server", kernel_limit;
  std::vector<std::string> words, outputs, in_place;
  std::optional<std::uint64_t> seed;
  VerifyFlags verify;
};

// "y=b.npy", "p=new.npz", "all.npz".
struct OutputFile {
  std::string name;  // Empty: all outputs.
  std::string path;
};

absl::StatusOr<OutputFile> ParseOutput(const std::string& text) {
  const std::size_t at = text.find('=');
  OutputFile out = at == std::string::npos ? OutputFile{"", text}
                                           : OutputFile{text.substr(0, at), text.substr(at + 1)};
  const bool npz = absl::EndsWith(out.path, ".npz");
  if (!npz && (out.name.empty() || !absl::EndsWith(out.path, ".npy"))) {
    return UsageError(absl::StrCat("-o: want NAME=FILE.npy or FILE.npz, got '", text, "'"));
  }
  return out;
}

// The tensors of an output, each with the name that it has in an archive.
std::vector<NamedBytes> PartsOf(const CallOutput& output) {
  std::vector<NamedBytes> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < output.value.tensors.size(); ++i) {
    const TensorSpec& spec = output.value.tensors[i];
    const auto size = static_cast<std::size_t>(Bytes(spec));
    out.push_back({output.value.is_list ? absl::StrCat(output.name, "_", i) : output.name, spec,
                   output.bytes.subspan(at, size)});
    at += size;
  }
  return out;
}

absl::Status WriteOutput(const OutputFile& file, const RunResult& result) {
  std::vector<NamedBytes> parts;
  for (const CallOutput& output : result.outputs) {
    if (!file.name.empty() && output.name != file.name) continue;
    for (NamedBytes& part : PartsOf(output)) parts.push_back(std::move(part));
  }
  if (absl::EndsWith(file.path, ".npz")) return WriteNpz(file.path, parts);
  if (parts.size() == 1) return WriteNpy(file.path, parts[0].spec, parts[0].bytes);
  return absl::InternalError(
      absl::StrCat("'", file.name, "': want one tensor of the server, got ", parts.size()));
}

bool IsList(const KernelSpec& spec, const std::string& output) {
  const auto named = [&](const OperandSpec& operand) {
    return operand.name == output && operand.is_list;
  };
  return std::any_of(spec.outputs.begin(), spec.outputs.end(), named) ||
         std::any_of(spec.inputs.begin(), spec.inputs.end(), named);
}

// Before the kernel runs: there must be such outputs (an archive without a name takes all of them),
// their files must take them, and there must be a place for those.
absl::Status CheckOutputs(const KernelSpec& spec, const std::vector<OutputFile>& files) {
  const std::vector<std::string> names = OutputNames(spec);
  for (const OutputFile& file : files) {
    if (names.empty()) return UsageError(absl::StrCat("-o: '", spec.name, "' has no output"));
    if (!file.name.empty() && std::find(names.begin(), names.end(), file.name) == names.end()) {
      return UsageError(absl::StrCat("-o: '", spec.name, "' has no output '", file.name,
                                     "'; it has ", absl::StrJoin(names, ", ")));
    }
    if (IsList(spec, file.name) && !absl::EndsWith(file.path, ".npz")) {
      return UsageError(absl::StrCat(
          "-o: '", file.name, "' is a list, which a .npz file takes; got '", file.path, "'"));
    }
    const absl::Status writable = CheckWritable(file.path);
    if (writable.ok()) continue;
    return UsageError(
        absl::StrCat("-o", file.name.empty() ? "" : " ", file.name, ": ", writable.message()));
  }
  return absl::OkStatus();
}

void ShowValues(const Session& session, const RunResult& result) {
  for (const CallOutput& output : result.outputs) {
    for (const NamedBytes& part : PartsOf(output)) {
      session.console.out << Escape(part.name) << " = " << ToText(part.spec) << "\n"
                          << ValuesText(part.spec, part.bytes) << "\n";
    }
  }
}

int Answer(const Session& session, const RunOptions& options, const RunResult& result,
           const std::vector<OutputFile>& files) {
  const v1::RunSummary& summary = result.summary;
  if (session.options.json) {
    Json out = ToJson(summary, /*with_samples=*/true);
    out["outputs"] = Json::array();
    for (const CallOutput& output : result.outputs) out["outputs"].push_back(ToJson(output));
    out["attempts"] = result.attempts;
    session.console.out << Dump(out) << "\n";
  } else {
    session.console.out << SummaryText(summary, session.console.terminal);
    for (const OutputFile& file : files) session.console.out << "wrote " << file.path << "\n";
    if (files.empty()) ShowValues(session, result);
  }
  return VerifiedCode(session, options.verify, summary);
}

RunCall MakeCall(const RunOptions& options, const Subject& subject, const Words& words,
                 Inputs* inputs) {
  RunCall call;
  subject.NameIn(&call);
  if (!options.variant.empty()) call.variant = options.variant;
  call.device = options.device;
  call.attributes = words.attributes;
  call.in_place = options.in_place;
  call.inputs = std::move(inputs->inputs);
  return call;
}

absl::StatusOr<RunResult> Launch(const Session& session, const Client& client, const RunCall& call,
                                 const std::string& title) {
  ProgressLine line(session.console);
  auto result = RunWithProgress(client, call, title, line);
  if (!result.ok()) return WithConversion(result.status(), call);
  return result;
}

absl::StatusOr<int> Run(const Session& session, const RunOptions& options) {
  GC_RETURN_IF_ERROR(CheckOneVariant(options.kernel, options.variant));
  GC_RETURN_IF_ERROR(CheckVerifyFlags(options.verify));
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const Subject subject,
                      FindSubject(session, *client, options.kernel, options.code, options.words));
  const KernelSpec& spec = subject.spec;
  std::vector<OutputFile> files;
  for (const std::string& text : subject.Renamed(options.outputs)) {
    GC_ASSIGN_OR_RETURN(OutputFile file, ParseOutput(text));
    for (const OutputFile& other : files) {
      if (file.path != other.path) continue;
      return UsageError(absl::StrCat("-o: '", file.path, "' is there twice"));
    }
    files.push_back(std::move(file));
  }
  const auto words = SortWords(spec, subject.Renamed(options.words));
  if (!words.ok()) return UsageError(words.status().message());
  GC_RETURN_IF_ERROR(CheckOutputs(spec, files));
  const MakeOn make_on = options.generate == "client" ? MakeOn::kClient : MakeOn::kServer;
  GC_ASSIGN_OR_RETURN(
      Inputs inputs,
      MakeInputs(spec, *words, {}, {.make_on = make_on, .seed = options.seed.value_or(0)}));
  RunCall call = MakeCall(options, subject, *words, &inputs);
  GC_ASSIGN_OR_RETURN(call.timeout, session.Timeout());
  GC_ASSIGN_OR_RETURN(call.kernel_time_limit, ParseKernelLimit(options.kernel_limit));
  GC_ASSIGN_OR_RETURN(const Inputs expected,
                      AddVerification(session, *client, subject, options.verify, &call));
  GC_ASSIGN_OR_RETURN(const RunResult result, Launch(session, *client, call, spec.name));
  for (const OutputFile& file : files) GC_RETURN_IF_ERROR(WriteOutput(file, result));
  return Answer(session, options, result, files);
}

}  // namespace

CommandEntry AddRun(CLI::App& program) {
  auto* app = program.add_subcommand("run");
  const auto options = std::make_shared<RunOptions>();
  app->add_option("KERNEL", options->kernel)->required();
  app->add_option("WORDS", options->words);
  app->add_option("-o,--output", options->outputs)->allow_extra_args(false);
  app->add_option("--in-place", options->in_place)->allow_extra_args(false);
  app->add_option("--variant", options->variant);
  app->add_option("--device", options->device);
  app->add_option("--generate", options->generate)->check(CLI::IsMember({"server", "client"}));
  AddSeedFlag(*app, &options->seed);
  app->add_option("--kernel-limit", options->kernel_limit);
  AddVerifyFlags(*app, &options->verify);
  AddCodeFlags(*app, &options->code);
  return {app, [options](const Session& session) { return Run(session, *options); }};
}

}  // namespace gridclock::cli
