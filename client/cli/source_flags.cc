#include "client/cli/source_flags.h"

#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "client/cli/modules.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

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

absl::Status FillOptions(const SourceFlags& flags, v1::CompileOptions* out) {
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

absl::StatusOr<v1::Module> LoadFile(const Client& client, const SourceFlags& flags,
                                    const SourceTarget& target) {
  v1::LoadRequest request;
  request.set_arch(flags.arch);
  *request.mutable_view() = target.view;
  GC_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(target.file));
  std::string bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (absl::EndsWith(target.file, ".ptx")) {
    request.set_ptx(std::move(bytes));
  } else {
    request.set_cubin(std::move(bytes));
  }
  return client.Load(request);
}

absl::StatusOr<v1::Module> CompileFile(const Client& client, const SourceFlags& flags,
                                       const SourceTarget& target) {
  v1::CompileRequest request;
  GC_RETURN_IF_ERROR(ReadSource(target.file, &request));
  GC_RETURN_IF_ERROR(FillOptions(flags, request.mutable_options()));
  for (const std::string& name : target.instances) request.add_name_expressions(name);
  *request.mutable_view() = target.view;
  return client.Compile(request);
}

}  // namespace

std::optional<v1::Module> FailedModule(const Client& client, const absl::Status& error) {
  const ErrorDetails details = DetailsOf(error);
  const auto id = details.metadata.find("module");
  if (details.reason != "COMPILE_FAILED" || id == details.metadata.end()) return std::nullopt;
  v1::GetModuleRequest request;
  request.set_id(id->second);
  auto module = client.GetModule(request);
  if (!module.ok()) return std::nullopt;  // The error itself has the beginning of the log.
  return *std::move(module);
}

void AddSourceFlags(CLI::App& app, SourceFlags* flags) {
  app.add_option("--arch", flags->arch);
  app.add_option("--std", flags->standard);
  app.add_option("-D", flags->defines)->allow_extra_args(false);
  app.add_flag("--fast-math", flags->fast_math);
  app.add_flag("--no-fmad", flags->no_fmad);
  app.add_flag("--line-info", flags->line_info);
  app.add_option("--max-registers", flags->max_registers)->check(CLI::Range(1.0, 255.0));
}

absl::StatusOr<v1::Module> MakeModule(const Session& session, const Client& client,
                                      const SourceFlags& flags, const SourceTarget& target) {
  const bool made = absl::EndsWith(target.file, ".ptx") || absl::EndsWith(target.file, ".cubin");
  auto module = made ? LoadFile(client, flags, target) : CompileFile(client, flags, target);
  if (module.ok()) return module;
  if (const auto failed = FailedModule(client, module.status())) {
    session.console.err << LogText(*failed, target.file, session.console.terminal);
  }
  return module;
}

}  // namespace gridclock::cli
