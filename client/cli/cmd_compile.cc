// compile: a file of device code becomes a module on the server; what it needs is shown.
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/modules.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

struct CompileFlags {
  std::string file, arch, standard, keep;
  std::vector<std::string> defines, instances;
  bool ptx = false, sass = false, resources = false;
  bool fast_math = false, no_fmad = false, line_info = false;
  std::uint32_t max_registers = 0, block = 0;
  std::uint64_t shared = 0;
};

absl::StatusOr<v1::CompileOptions::Standard> ParseStandard(const std::string& text) {
  const std::pair<const char*, v1::CompileOptions::Standard> known[] = {
      {"", v1::CompileOptions::STANDARD_UNSPECIFIED},
      {"c++14", v1::CompileOptions::CPP14},
      {"c++17", v1::CompileOptions::CPP17},
      {"c++20", v1::CompileOptions::CPP20}};
  for (const auto& [name, standard] : known) {
    if (text == name) return standard;
  }
  return UsageError(absl::StrCat("--std: want c++14, c++17 or c++20, got '", text, "'"));
}

absl::Status FillOptions(const CompileFlags& flags, v1::CompileOptions* out) {
  GC_ASSIGN_OR_RETURN(const auto standard, ParseStandard(flags.standard));
  out->set_standard(standard);
  out->set_arch(flags.arch);
  out->set_fast_math(flags.fast_math);
  if (flags.no_fmad) out->set_fmad(false);
  out->set_max_registers(flags.max_registers);
  out->set_line_info(flags.line_info);
  for (const std::string& define : flags.defines) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(define, absl::MaxSplits('=', 1));
    (*out->mutable_defines())[parts.first] = parts.second;
  }
  return absl::OkStatus();
}

v1::ModuleView ViewOf(const CompileFlags& flags) {
  v1::ModuleView view;
  view.set_ptx(flags.ptx || !flags.keep.empty());
  view.set_sass(flags.sass);
  view.set_cubin(!flags.keep.empty());
  view.set_block_threads(flags.block);
  view.set_dynamic_shared_bytes(flags.shared);
  return view;
}

absl::StatusOr<v1::Module> LoadFile(const Client& client, const CompileFlags& flags) {
  v1::LoadRequest request;
  request.set_arch(flags.arch);
  *request.mutable_view() = ViewOf(flags);
  GC_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(flags.file));
  std::string bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (absl::EndsWith(flags.file, ".ptx")) {
    request.set_ptx(std::move(bytes));
  } else {
    request.set_cubin(std::move(bytes));
  }
  return client.Load(request);
}

absl::StatusOr<v1::Module> CompileFile(const Client& client, const CompileFlags& flags) {
  v1::CompileRequest request;
  GC_RETURN_IF_ERROR(ReadSource(flags.file, &request));
  GC_RETURN_IF_ERROR(FillOptions(flags, request.mutable_options()));
  for (const std::string& name : flags.instances) request.add_name_expressions(name);
  *request.mutable_view() = ViewOf(flags);
  return client.Compile(request);
}

// What the error left out: the whole log, and what was set aside.
void ShowFailure(const Session& session, const Client& client, const CompileFlags& flags,
                 const absl::Status& error) {
  const ErrorDetails details = DetailsOf(error);
  const auto id = details.metadata.find("module");
  if (details.reason != "COMPILE_FAILED" || id == details.metadata.end()) return;
  v1::GetModuleRequest request;
  request.set_id(id->second);
  const auto module = client.GetModule(request);
  if (!module.ok()) return;  // The error itself has the beginning of the log.
  session.console.err << LogText(*module, flags.file, session.console.terminal);
}

absl::Status Write(const std::string& path, absl::string_view text) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(text.data()),
                                         text.size());
  return WriteFile(path, {&bytes, 1});
}

absl::Status Keep(const CompileFlags& flags, const v1::Module& module) {
  std::error_code error;
  std::filesystem::create_directories(flags.keep, error);
  const std::string stem = std::filesystem::path(flags.file).stem().string();
  const std::pair<const char*, std::string> files[] = {{".ptx", module.ptx()},
                                                       {".cubin", module.cubin()},
                                                       {".sass", module.sass()},
                                                       {".log", module.log()},
                                                       {".resources.json", Dump(ToJson(module))}};
  for (const auto& [ending, text] : files) {
    if (text.empty()) continue;
    GC_RETURN_IF_ERROR(Write(absl::StrCat(flags.keep, "/", stem, ending), text));
  }
  return absl::OkStatus();
}

void Show(const Session& session, const CompileFlags& flags, const v1::Module& module) {
  if (session.options.json) {
    session.console.out << Dump(ToJson(module)) << "\n";
    return;
  }
  session.console.err << LogText(module, flags.file, session.console.terminal);
  if (flags.ptx) session.console.out << CodeText(module.ptx());
  if (flags.sass) session.console.out << CodeText(module.sass());
  if (flags.resources || (!flags.ptx && !flags.sass)) session.console.out << ResourcesText(module);
}

absl::StatusOr<int> Compile(const Session& session, const CompileFlags& flags) {
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  const bool made = absl::EndsWith(flags.file, ".ptx") || absl::EndsWith(flags.file, ".cubin");
  const auto module = made ? LoadFile(*client, flags) : CompileFile(*client, flags);
  if (!module.ok()) {
    ShowFailure(session, *client, flags, module.status());
    return module.status();
  }
  if (!flags.keep.empty()) GC_RETURN_IF_ERROR(Keep(flags, *module));
  Show(session, flags, *module);
  return kOk;
}

}  // namespace

CommandEntry AddCompile(CLI::App& program) {
  auto* app = program.add_subcommand("compile");
  const auto flags = std::make_shared<CompileFlags>();
  app->add_option("FILE", flags->file)->required();
  app->add_flag("--ptx", flags->ptx);
  app->add_flag("--sass", flags->sass);
  app->add_flag("--resources", flags->resources);
  app->add_option("--keep", flags->keep);
  app->add_option("--arch", flags->arch);
  app->add_option("--std", flags->standard);
  app->add_option("-D", flags->defines);
  app->add_option("--instance", flags->instances);
  app->add_flag("--fast-math", flags->fast_math);
  app->add_flag("--no-fmad", flags->no_fmad);
  app->add_flag("--line-info", flags->line_info);
  app->add_option("--max-registers", flags->max_registers);
  app->add_option("--block", flags->block);
  app->add_option("--shared", flags->shared);
  return {app, [flags](const Session& session) { return Compile(session, *flags); }};
}

}  // namespace gridclock::cli
