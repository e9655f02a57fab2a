// compile: a file of device code becomes a module on the server; what it needs is shown.
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/inspect.h"
#include "client/cli/modules.h"
#include "client/cli/source_flags.h"
#include "client/cli/subject.h"
#include "client/cpp/file.h"

namespace gridclock::cli {
namespace {

struct CompileFlags {
  SourceFlags source;
  std::string file, keep;
  std::vector<std::string> instances;
  bool ptx = false, sass = false, resources = false, inspect = false;
  std::uint32_t block = 0;
  std::uint64_t shared = 0;
};

v1::ModuleView ViewOf(const CompileFlags& flags) {
  v1::ModuleView view;
  view.set_ptx(flags.ptx || flags.inspect || !flags.keep.empty());
  view.set_sass(flags.sass || flags.inspect || !flags.keep.empty());
  view.set_cubin(!flags.keep.empty());
  view.set_block_threads(flags.block);
  view.set_dynamic_shared_bytes(flags.shared);
  return view;
}

absl::Status KeepFile(const CompileFlags& flags, absl::string_view ending, absl::string_view text) {
  std::error_code error;
  std::filesystem::create_directories(flags.keep, error);
  const std::string stem = std::filesystem::path(flags.file).stem().string();
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(text.data()),
                                         text.size());
  return WriteFile(absl::StrCat(flags.keep, "/", stem, ending), {&bytes, 1});
}

absl::Status KeepLog(const CompileFlags& flags, const v1::Module& module) {
  return KeepFile(flags, ".log", LogText(module, flags.file, /*terminal=*/{}));
}

absl::Status Keep(const CompileFlags& flags, const v1::Module& module) {
  const std::pair<const char*, std::string> files[] = {{".ptx", module.ptx()},
                                                       {".cubin", module.cubin()},
                                                       {".sass", module.sass()},
                                                       {".resources.json", Dump(ToJson(module))}};
  for (const auto& [ending, text] : files) {
    if (!text.empty()) GC_RETURN_IF_ERROR(KeepFile(flags, ending, text));
  }
  return KeepLog(flags, module);
}

absl::Status Show(const Session& session, const CompileFlags& flags, const v1::Module& module) {
  const CodeOfLines lines =
      flags.inspect ? InspectLines(module.ptx(), module.sass(), module.name()) : CodeOfLines{};
  const CodeShown shown = {.ptx = flags.ptx, .sass = flags.sass};
  if (session.options.json) {
    Json out = ToJson(module);
    if (flags.inspect) out["lines"] = ToJson(lines, shown);
    session.console.out << Dump(out) << "\n";
    return absl::OkStatus();
  }
  session.console.err << LogText(module, flags.file, session.console.terminal);
  if (flags.inspect) {
    GC_ASSIGN_OR_RETURN(const std::string source, ReadSmallFile(flags.file));
    session.console.out << InspectText(lines, source, shown, session.console.terminal);
  } else {
    if (flags.ptx) session.console.out << CodeText(module.ptx());
    if (flags.sass) session.console.out << CodeText(module.sass());
  }
  if (flags.resources || (!flags.ptx && !flags.sass && !flags.inspect)) {
    session.console.out << ResourcesText(module);
  }
  return absl::OkStatus();
}

// A server without nvdisasm has PTX to look at.
absl::StatusOr<v1::Module> Make(const Session& session, const Client& client,
                                const CompileFlags& flags, SourceTarget target) {
  SourceFlags source = flags.source;
  source.line_info = source.line_info || flags.inspect;
  auto module = MakeModule(session, client, source, target);
  const bool no_sass = !flags.sass && DetailsOf(module.status()).reason == "NO_TOOLCHAIN";
  if (module.ok() || !no_sass || !target.view.sass()) return module;
  session.console.err << "no SASS: " << Escape(module.status().message()) << "\n";
  target.view.set_sass(false);
  return MakeModule(session, client, source, target);
}

absl::StatusOr<int> Compile(const Session& session, const CompileFlags& flags) {
  GC_RETURN_IF_ERROR(CheckIsCode(flags.file));
  GC_ASSIGN_OR_RETURN(const auto client, session.Connect());
  GC_ASSIGN_OR_RETURN(const std::vector<SourceWords> words, WordsInFile(flags.file));
  SourceTarget target{.file = flags.file, .instances = flags.instances, .view = ViewOf(flags)};
  if (target.instances.empty()) target.instances = TemplatesOf(words);
  if (flags.inspect && !absl::EndsWith(flags.file, ".cu")) {
    return UsageError(absl::StrCat("--inspect: want a source (.cu), got ", flags.file));
  }
  const absl::StatusOr<v1::Module> made = Make(session, *client, flags, std::move(target));
  if (!made.ok()) {
    const auto failed = flags.keep.empty() ? std::nullopt : FailedModule(*client, made.status());
    if (failed) GC_RETURN_IF_ERROR(KeepLog(flags, *failed));
    return made.status();
  }
  const v1::Module& module = *made;
  if (!flags.keep.empty()) GC_RETURN_IF_ERROR(Keep(flags, module));
  GC_RETURN_IF_ERROR(Show(session, flags, module));
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
  app->add_flag("--inspect", flags->inspect);
  app->add_option("--keep", flags->keep);
  AddSourceFlags(*app, &flags->source);
  app->add_option("--instance", flags->instances);
  app->add_option("--block", flags->block)->check(CLI::Range(1.0, 1024.0));
  app->add_option("--shared", flags->shared)->check(CLI::Range(0.0, 1e9));
  return {app, [flags](const Session& session) { return Compile(session, *flags); }};
}

}  // namespace gridclock::cli
