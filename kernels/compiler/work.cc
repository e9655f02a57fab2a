#include "kernels/compiler/work.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"
#include "kernels/compiler/cubin.h"
#include "kernels/compiler/host_code.h"
#include "kernels/compiler/parameters.h"
#include "kernels/compiler/prelude.h"
#include "kernels/compiler/ptxas_log.h"
#include "kernels/compiler/tool.h"
#include "proto/codec/module.h"

namespace gridclock {
namespace {

constexpr std::size_t kMostNotes = 512;  // Of a source and its headers.
constexpr std::uint64_t kToolFileBytes = std::uint64_t{32} << 20;

// The times of stages, one behind the other.
class Stages {
 public:
  explicit Stages(ModuleFacts& facts) : facts_(facts), last_(clock_.Now()) {}
  void End(absl::string_view name) {
    const absl::Time now = clock_.Now();
    facts_.stages.push_back({std::string(name), absl::ToDoubleMilliseconds(now - last_)});
    last_ = now;
  }

 private:
  const MonotonicClock clock_;
  ModuleFacts& facts_;
  absl::Time last_;
};

absl::string_view StandardOption(CppStandard standard) {
  switch (standard) {
    case CppStandard::k14:
      return "--std=c++14";
    case CppStandard::k20:
      return "--std=c++20";
    case CppStandard::k17:
      break;
  }
  return "--std=c++17";
}

// All that a compile may be told: words of ours around checked values.
std::vector<std::string> OptionsFor(const CompileOptions& options, const Tools& tools) {
  std::vector<std::string> out = {absl::StrCat("--gpu-architecture=", options.arch),
                                  std::string(StandardOption(options.standard)),
                                  "--device-as-default-execution-space",
                                  "--no-cache",
                                  "--ptxas-options=-v",
                                  absl::StrCat("--fmad=", options.fmad ? "true" : "false")};
  if (options.fast_math) out.push_back("--use_fast_math");
  if (options.line_info) out.push_back("--generate-line-info");
  if (options.max_registers != 0) {
    out.push_back(absl::StrCat("--maxrregcount=", options.max_registers));
  }
  for (const auto& [name, value] : options.defines) {
    out.push_back(absl::StrCat("-D", name, value.empty() ? "" : "=", value));
  }
  for (const std::string& folder : tools.toolkit.includes) {
    out.push_back(absl::StrCat("--include-path=", folder));
  }
  return out;
}

// A client's header replaces one of ours with the same name.
std::vector<SourceText> HeadersFor(const ModuleSource& source) {
  std::vector<SourceText> headers = source.headers;
  for (const SourceText& ours : BuiltInHeaders()) {
    const bool theirs = std::any_of(headers.begin(), headers.end(),
                                    [&](const SourceText& h) { return h.name == ours.name; });
    if (!theirs) headers.push_back(ours);
  }
  return headers;
}

// Whether a file is there, and why it cannot be read, is nobody's business.
void DropReason(std::string& line) {
  if (!absl::StrContains(line, "cannot open source file \"")) return;
  line.resize(line.rfind('"') + 1);
}

// "ptxas input 7, line 4; error   : what" as other compilers say it: its input has no name.
void NamePtx(std::string& line) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "ptxas /proc/self/fd/")) return;
  const std::size_t at = rest.find(", line "), semicolon = rest.find("; "), colon = rest.find(": ");
  if (at == absl::string_view::npos || semicolon < at || colon == absl::string_view::npos) return;
  if (colon < semicolon) return;
  const absl::string_view number = rest.substr(at + 7, semicolon - at - 7);
  const absl::string_view kind = rest.substr(semicolon + 2, colon - semicolon - 2);
  line = absl::StrCat("input.ptx(", number, "): ", absl::StripAsciiWhitespace(kind), ": ",
                      rest.substr(colon + 2));
}

// Without the folders of this machine.
std::string LogForClient(absl::string_view log, const Tools& tools) {
  std::vector<std::pair<std::string, std::string>> paths;
  for (const std::string& folder : tools.toolkit.includes) {
    paths.emplace_back(absl::StrCat(folder, "/"), "");
  }
  // The longest first.
  std::sort(paths.begin(), paths.end(),
            [](auto& a, auto& b) { return a.first.size() > b.first.size(); });
  std::vector<std::string> lines = absl::StrSplit(log, '\n');
  for (std::string& line : lines) {
    DropReason(line);
    NamePtx(line);
  }
  // The input of a tool has no name.
  std::string out = absl::StrReplaceAll(absl::StrJoin(lines, "\n"), {{"/proc/self/fd/", "input "}});
  for (const auto& path : paths) out = absl::StrReplaceAll(out, {path});
  return out;
}

void SetLog(absl::string_view log, const Tools& tools, const WorkLimits& limits,
            ModuleFacts* facts) {
  std::string text = CleanText(LogForClient(log, tools));
  if (text.size() > limits.log_bytes) text = ErrorsFirst(text);
  facts->log = CutText(std::move(text), limits.log_bytes, &facts->log_truncated);
}

void AddSpills(const PtxasLog& log, ModuleFacts* facts) {
  for (ModuleEntry& entry : facts->entries) {
    const auto found = log.spills.find(entry.name);
    if (found == log.spills.end()) continue;
    entry.spill_store_bytes = found->second.stores;
    entry.spill_load_bytes = found->second.loads;
  }
}

absl::Status AddCubinFacts(absl::string_view cubin, ModuleFacts* facts) {
  GC_ASSIGN_OR_RETURN(CubinFacts read, ReadCubin(cubin));
  facts->entries = std::move(read.entries);
  facts->global_bytes = read.global_bytes;
  facts->constant_bytes = read.constant_bytes;
  if (facts->arch.empty()) facts->arch = std::move(read.arch);
  return absl::OkStatus();
}

absl::Status CheckOutput(const std::string& bytes, const WorkLimits& limits) {
  if (bytes.size() <= limits.output_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("want an output of at most ", limits.output_bytes, " bytes"));
}

worker::v1::CompilerResult OutOfMemory() {
  worker::v1::CompilerResult out;
  out.set_out_of_memory(true);
  return out;
}

absl::StatusOr<worker::v1::CompilerResult> ResultOf(const ModuleFacts& facts, std::string ptx,
                                                    std::string cubin, const WorkLimits& limits) {
  GC_RETURN_IF_ERROR(CheckOutput(ptx, limits));
  GC_RETURN_IF_ERROR(CheckOutput(cubin, limits));
  worker::v1::CompilerResult out;
  out.set_failed(facts.failed);
  Encode(facts, out.mutable_module());
  out.set_ptx(std::move(ptx));
  out.set_cubin(std::move(cubin));
  return out;
}

// What may say what a word means: the source, the client's headers, and definitions by options.
std::vector<std::string> TextsThatDefine(const ModuleSource& source) {
  std::vector<std::string> texts = {source.main.text};
  for (const auto& [name, value] : source.options.defines) {
    texts.push_back(absl::StrCat("#define ", name, " ", value, "\n"));
  }
  for (const SourceText& header : source.headers) texts.push_back(header.text);
  return texts;
}

std::vector<absl::string_view> TextsOf(const ModuleSource& source) {
  std::vector<absl::string_view> texts = {source.main.text};
  for (const SourceText& header : source.headers) texts.emplace_back(header.text);
  return texts;
}

absl::StatusOr<worker::v1::CompilerResult> Failed(ModuleFacts facts, const WorkLimits& limits) {
  facts.failed = true;
  return ResultOf(facts, "", "", limits);
}

// The client's code compiles, but the cubin is none that a module can be made of: it has too many
// kernels, or names that are too long.
absl::StatusOr<worker::v1::CompilerResult> Unusable(const absl::Status& why, ModuleFacts facts,
                                                    const WorkLimits& limits) {
  absl::StrAppend(&facts.log, "error: ", CleanText(why.message()), "\n");
  return Failed(std::move(facts), limits);
}

// Code in which there is nothing to launch, and what was set aside of it.
absl::StatusOr<worker::v1::CompilerResult> WithoutEntries(ModuleFacts facts,
                                                          const WorkLimits& limits) {
  std::string log =
      facts.kind == ModuleKind::kPtx
          ? "error: no .entry was found\n"
          : "error: no __global__ function was found; a template needs a name expression\n";
  for (const SourceNote& note : facts.notes) {
    absl::StrAppend(&log, "lines ", note.first_line, "-", note.last_line, " set aside: ", note.text,
                    "\n");
  }
  facts.log =
      CutText(CleanText(absl::StrCat(log, facts.log)), limits.log_bytes, &facts.log_truncated);
  return Failed(std::move(facts), limits);
}

// A note is of lines of the source: here that which includes the header, or the first.
void NoteHeader(absl::string_view source, const std::string& name,
                const std::vector<SourceNote>& notes, ModuleFacts* facts) {
  const std::size_t at = source.find(absl::StrCat("\"", name, "\""));
  const absl::string_view before = source.substr(0, at == absl::string_view::npos ? 0 : at);
  const auto line = static_cast<std::uint32_t>(1 + std::count(before.begin(), before.end(), '\n'));
  for (const SourceNote& note : notes) {
    if (facts->notes.size() >= kMostNotes) return;
    facts->notes.push_back({line, line,
                            absl::StrCat("in ", name, ", lines ", note.first_line, "-",
                                         note.last_line, ": ", note.text)});
  }
}

SourceContext ContextOf(const ModuleSource& source, std::span<const SourceText> headers) {
  SourceContext context{.device_macros = DeviceMacrosIn(TextsThatDefine(source))};
  for (const SourceText& header : headers) context.known.insert(header.name);
  context.host_types = HostTypesIn(TextsOf(source), context);
  return context;
}

NvrtcProgram ProgramOf(const ModuleSource& source, const Tools& tools, ModuleFacts* facts) {
  const std::vector<absl::string_view> texts = TextsOf(source);
  const bool own_ulong = std::any_of(texts.begin(), texts.end(), NamesUlong);
  NvrtcProgram program{.name = source.main.name,
                       .source = Prelude(source.main.name, own_ulong),
                       .headers = HeadersFor(source),
                       .options = OptionsFor(source.options, tools),
                       .name_expressions = source.name_expressions};
  DeviceSource device = SetHostCodeAside(source.main.text, ContextOf(source, program.headers));
  facts->notes = std::move(device.notes);
  program.source += device.text;
  return program;
}

// True if any of the client's headers has host code, which then is gone.
bool CutHeaders(const ModuleSource& source, NvrtcProgram* program, ModuleFacts* facts) {
  const SourceContext context = ContextOf(source, program->headers);
  std::vector<SourceText> files = source.headers;
  files.push_back(source.main);
  const std::set<std::string> in_bodies = IncludedInBodies(files);
  bool any = false;
  // The client's own come first.
  for (SourceText& header : std::span(program->headers).first(source.headers.size())) {
    if (in_bodies.contains(LastPart(header.name))) continue;
    DeviceSource cut = SetHostCodeAside(header.text, context);
    any = any || cut.text != header.text;
    header.text = std::move(cut.text);
    NoteHeader(source.main.text, header.name, cut.notes, facts);
  }
  return any;
}

// Headers are cut only where they do not compile as they are: where a text is included, and so what
// it means, is for the preprocessor to say.
NvrtcOutput CompileProgram(const ModuleSource& source, const Tools& tools, NvrtcProgram program,
                           ModuleFacts* facts) {
  NvrtcOutput output = tools.nvrtc->Compile(program);
  const bool wrong = !output.ok && !output.out_of_memory && output.fault.empty();
  if (wrong && CutHeaders(source, &program, facts)) return tools.nvrtc->Compile(program);
  return output;
}

// ptxas works within NVRTC and says how long: that is a stage of its own.
void SplitStage(double ptxas_milliseconds, ModuleFacts* facts) {
  CompileStage& nvrtc = facts->stages.back();
  nvrtc.milliseconds = std::max(0.0, nvrtc.milliseconds - ptxas_milliseconds);
  facts->stages.push_back({"ptxas", ptxas_milliseconds});
}

absl::StatusOr<worker::v1::CompilerResult> CompileCuda(const ModuleSource& source,
                                                       const Tools& tools,
                                                       const WorkLimits& limits) {
  if (tools.nvrtc == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("NVRTC is missing: ", tools.no_nvrtc));
  }
  GC_RETURN_IF_ERROR(
      EnterSandbox({.limits = limits.sandbox, .readable = tools.toolkit.includes, .executable = {}},
                   tools.landlock));
  ModuleFacts facts{.kind = ModuleKind::kCuda, .name = source.main.name};
  facts.arch = source.options.arch;
  facts.source_bytes = source.main.text.size();
  for (const SourceText& header : source.headers) facts.source_bytes += header.text.size();
  facts.toolchain = absl::StrCat("NVRTC ", tools.nvrtc->version());
  Stages stages(facts);
  NvrtcProgram program = ProgramOf(source, tools, &facts);
  stages.End("scan");
  NvrtcOutput output = CompileProgram(source, tools, std::move(program), &facts);
  stages.End("nvrtc");
  const PtxasLog log = ReadPtxasLog(output.log);
  SplitStage(log.milliseconds, &facts);
  SetLog(log.rest, tools, limits, &facts);
  if (output.out_of_memory) return OutOfMemory();
  if (!output.fault.empty()) return absl::AbortedError(output.fault);
  if (!output.ok) return Failed(std::move(facts), limits);
  GC_RETURN_IF_ERROR(CheckOutput(output.cubin, limits));
  if (const absl::Status status = AddCubinFacts(output.cubin, &facts); !status.ok()) {
    return Unusable(status, std::move(facts), limits);
  }
  if (facts.entries.empty()) return WithoutEntries(std::move(facts), limits);
  AddSpills(log, &facts);
  for (const auto& [expression, mangled] : output.lowered) {
    for (ModuleEntry& entry : facts.entries) {
      if (entry.name == mangled) entry.display = expression;
    }
  }
  DescribeParameters(source.main.text, &facts.entries);
  stages.End("inspect");
  return ResultOf(facts, CleanText(output.ptx), std::move(output.cubin), limits);
}

absl::Status CheckTool(const std::string& path, absl::string_view name, const Tools& tools) {
  if (path.empty()) return absl::FailedPreconditionError(absl::StrCat(name, " is missing"));
  if (tools.landlock >= kLandlockOfTools) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name, " cannot be run safely: want Landlock of version ", kLandlockOfTools,
                   " (Linux 6.2) or later, got ", tools.landlock));
}

SandboxLimits ToolLimits(const WorkLimits& limits) {
  SandboxLimits out = limits.sandbox;
  out.file_bytes = kToolFileBytes;
  return out;
}

absl::Status StrictSandbox(const Tools& tools, const WorkLimits& limits) {
  return EnterSandbox({.limits = limits.sandbox, .readable = {}, .executable = {}}, tools.landlock);
}

// ptxas makes a file of its own of what has none, in a folder that its sandbox does not have.
bool FailedForWantOfEntries(const ToolOutput& ran, absl::string_view ptx) {
  return ran.code != 0 && !absl::StrContains(ptx, ".entry") &&
         absl::StrContains(ran.text, "Could not open output file");
}

// "sm_100" of ".target sm_100, texmode_independent"; "" if there is none.
std::string TargetOf(absl::string_view ptx) {
  for (absl::string_view line : absl::StrSplit(ptx, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, ".target")) continue;
    line = absl::StripLeadingAsciiWhitespace(line);
    return std::string(line.substr(0, line.find_first_of(", \t/")));
  }
  return "";
}

// ptxas says that a target does not fit, and not which it is.
std::string WithTargets(std::string log, const ModuleSource& source) {
  constexpr absl::string_view kTooHigh = "specified by .target is higher than default SM version";
  if (!absl::StrContains(log, kTooHigh)) return log;
  return absl::StrCat("error: this PTX is for ", TargetOf(source.main.text),
                      " and later, the GPU or the request (options.arch) wants ",
                      source.options.arch, "\n", log);
}

absl::StatusOr<worker::v1::CompilerResult> LoadPtx(const ModuleSource& source, const Tools& tools,
                                                   const WorkLimits& limits) {
  GC_RETURN_IF_ERROR(CheckTool(tools.toolkit.ptxas, "ptxas", tools));
  ModuleFacts facts{.kind = ModuleKind::kPtx, .arch = source.options.arch, .toolchain = "ptxas"};
  facts.source_bytes = source.main.text.size();
  Stages stages(facts);
  GC_ASSIGN_OR_RETURN(
      ToolOutput ran,
      RunTool({.program = tools.toolkit.ptxas,
               .args = {absl::StrCat("-arch=", source.options.arch), "-v", "@in", "-o", "@out"},
               .input = source.main.text,
               .limits = ToolLimits(limits)},
              tools.landlock));
  stages.End("ptxas");
  GC_RETURN_IF_ERROR(StrictSandbox(tools, limits));
  if (ran.signal != 0) {
    return absl::AbortedError(absl::StrCat("ptxas was ended by signal ", ran.signal));
  }
  if (FailedForWantOfEntries(ran, source.main.text)) {
    return WithoutEntries(std::move(facts), limits);
  }
  const PtxasLog log = ReadPtxasLog(ran.text);
  SetLog(WithTargets(log.rest, source), tools, limits, &facts);
  if (ran.code != 0 && SaysOutOfMemory(ran.text)) return OutOfMemory();
  if (ran.code != 0) return Failed(std::move(facts), limits);
  GC_RETURN_IF_ERROR(CheckOutput(ran.file, limits));
  if (const absl::Status status = AddCubinFacts(ran.file, &facts); !status.ok()) {
    return Unusable(status, std::move(facts), limits);
  }
  if (facts.entries.empty()) return WithoutEntries(std::move(facts), limits);
  AddSpills(log, &facts);
  DescribeParameters("", &facts.entries);
  stages.End("inspect");
  return ResultOf(facts, source.main.text, std::move(ran.file), limits);
}

absl::StatusOr<worker::v1::CompilerResult> LoadCubin(const ModuleSource& source, const Tools& tools,
                                                     const WorkLimits& limits) {
  GC_RETURN_IF_ERROR(StrictSandbox(tools, limits));
  ModuleFacts facts{.kind = ModuleKind::kCubin};
  facts.source_bytes = source.main.text.size();
  Stages stages(facts);
  if (const absl::Status status = AddCubinFacts(source.main.text, &facts); !status.ok()) {
    facts.log = CleanText(status.message());
    return Failed(std::move(facts), limits);
  }
  absl::string_view wanted = source.options.arch;
  if (!absl::ConsumeSuffix(&wanted, "a")) absl::ConsumeSuffix(&wanted, "f");
  if (!wanted.empty() && wanted != facts.arch) {
    facts.log = absl::StrCat("want a cubin for ", wanted, ", got one for ", facts.arch);
    return Failed(std::move(facts), limits);
  }
  if (!wanted.empty()) facts.arch = source.options.arch;
  if (facts.entries.empty()) return WithoutEntries(std::move(facts), limits);
  DescribeParameters("", &facts.entries);
  stages.End("inspect");
  return ResultOf(facts, "", source.main.text, limits);
}

absl::StatusOr<worker::v1::CompilerResult> Disassemble(const std::string& cubin, const Tools& tools,
                                                       const WorkLimits& limits) {
  GC_RETURN_IF_ERROR(CheckTool(tools.toolkit.nvdisasm, "nvdisasm", tools));
  GC_ASSIGN_OR_RETURN(ToolOutput ran, RunTool({.program = tools.toolkit.nvdisasm,
                                               .args = {"-c", "-g", "@in"},
                                               .input = cubin,
                                               .limits = ToolLimits(limits)},
                                              tools.landlock));
  GC_RETURN_IF_ERROR(StrictSandbox(tools, limits));
  if (ran.signal != 0 || ran.code != 0) {
    return absl::AbortedError(
        absl::StrCat("nvdisasm ended with code ", ran.code, ", signal ", ran.signal));
  }
  GC_RETURN_IF_ERROR(CheckOutput(ran.text, limits));
  worker::v1::CompilerResult out;
  out.set_sass(CleanText(ran.text));
  GC_RETURN_IF_ERROR(CheckOutput(out.sass(), limits));
  return out;
}

std::string SafeWhy(const std::string& path, absl::string_view name, const Tools& tools) {
  return std::string(CheckTool(path, name, tools).message());
}

}  // namespace

void Describe(const Tools& tools, worker::v1::CompilerHello* out) {
  out->set_sandbox(SandboxText(tools.landlock));
  out->set_no_ptx(SafeWhy(tools.toolkit.ptxas, "ptxas", tools));
  out->set_no_sass(SafeWhy(tools.toolkit.nvdisasm, "nvdisasm", tools));
  std::vector<std::string> files = {"/proc/self/exe", tools.toolkit.ptxas};
  for (const std::string& folder : tools.toolkit.includes) {
    // Of what a source may include each part that is released by itself.
    for (const char* header : {"/cuda.h", "/cuda_runtime.h", "/cuda_fp16.hpp", "/cub/version.cuh",
                               "/cuda/std/__cccl/version.h"}) {
      files.push_back(folder + header);
    }
  }
  if (tools.nvrtc == nullptr) {
    out->set_no_cuda(absl::StrCat("NVRTC is missing: ", tools.no_nvrtc));
  } else {
    out->set_toolchain(absl::StrCat("NVRTC ", tools.nvrtc->version()));
    for (const std::string& arch : tools.nvrtc->architectures()) out->add_architectures(arch);
    files.push_back(tools.nvrtc->path());
    files.push_back(tools.nvrtc->builtins_path());
  }
  out->set_fingerprint(
      absl::StrCat(GRIDCLOCK_VERSION, "-", out->toolchain(), "-", Fingerprint(files)));
}

absl::Status WarmUp(const Tools& tools, const std::string& arch) {
  if (tools.nvrtc == nullptr) return absl::OkStatus();
  CompileOptions options;
  options.arch = arch;
  if (arch.empty()) {
    const auto& known = tools.nvrtc->architectures();
    options.arch = known.empty() ? "sm_90" : known.back();
  }
  ModuleSource line{.kind = ModuleKind::kCuda,
                    .main = {"warm.cu", "__global__ void warm() {}\n"},
                    .headers = {},
                    .options = options,
                    .name_expressions = {}};
  ModuleFacts facts;
  const NvrtcOutput output = tools.nvrtc->Compile(ProgramOf(line, tools, &facts));
  if (output.ok) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("NVRTC does not compile a line: ", output.log));
}

absl::StatusOr<worker::v1::CompilerResult> DoWork(const worker::v1::CompilerOrder& order,
                                                  const Tools& tools, const WorkLimits& limits) {
  ModuleLimits any;  // The server has held the order against its own.
  any.source_bytes = any.code_bytes = limits.output_bytes;
  switch (order.work_case()) {
    case worker::v1::CompilerOrder::kCompile: {
      GC_ASSIGN_OR_RETURN(const ModuleSource source, Decode(order.compile(), any));
      return CompileCuda(source, tools, limits);
    }
    case worker::v1::CompilerOrder::kLoad: {
      GC_ASSIGN_OR_RETURN(const ModuleSource source, Decode(order.load(), any));
      return source.kind == ModuleKind::kPtx ? LoadPtx(source, tools, limits)
                                             : LoadCubin(source, tools, limits);
    }
    case worker::v1::CompilerOrder::kDisassemble:
      return Disassemble(order.disassemble(), tools, limits);
    case worker::v1::CompilerOrder::WORK_NOT_SET:
      break;
  }
  return absl::InternalError("an order without work");
}

}  // namespace gridclock
