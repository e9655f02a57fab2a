#include "client/cli/subject.h"

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "client/cli/inputs.h"
#include "client/cli/modules.h"
#include "client/cli/source_words.h"
#include "client/cpp/file.h"
#include "proto/codec/module.h"
#include "proto/types/find_entry.h"
#include "proto/types/infer_words.h"

namespace gridclock::cli {
namespace {

// The kernel that a file's comments, the flags or nothing describe.
struct Description {
  SourceWords source;     // Its words may be empty: then they are inferred.
  std::string overrides;  // Clauses of the flags.
  std::string from;       // Where the words are from, for messages.
};

// "grid(a, b)" of "a, b" and of "(a, b)".
std::string GeometryClause(absl::string_view name, const std::string& text) {
  const std::string bare = absl::StrCat(name, " ", text);
  return ParseClauses(bare).ok() ? bare : absl::StrCat(name, "(", text, ")");
}

absl::StatusOr<std::string> Overrides(const CodeFlags& flags) {
  std::vector<std::string> out;
  for (const auto& [name, text] : {std::pair("grid", &flags.grid), std::pair("block", &flags.block),
                                   std::pair("cluster", &flags.cluster)}) {
    if (!text->empty()) out.push_back(GeometryClause(name, *text));
  }
  if (!flags.shared.empty()) out.push_back(absl::StrCat("shared ", flags.shared));
  if (!flags.params.empty()) out.push_back(absl::StrCat("params ", flags.params));
  for (const std::string& clause : out) {
    const auto parsed = ParseClauses(clause);
    if (!parsed.ok()) {
      return UsageError(absl::StrCat("--", clause, ": ", parsed.status().message()));
    }
  }
  return absl::StrJoin(out, " ");
}

// "x: f32[N] -> ..." has no name before it; "square x: ..." does.
bool HasName(absl::string_view words) {
  const SourceLaunch cut = CutEntry(words);
  return !cut.entry.empty() && cut.entry != "inout" && !absl::StartsWith(cut.clauses, ":");
}

// --words in place of what the file says.
void TakeWords(const CodeFlags& flags, const std::string& entry, Description* out) {
  const absl::string_view words = absl::StripAsciiWhitespace(flags.words);
  const SourceLaunch cut = HasName(words) ? CutEntry(words) : SourceLaunch{"", std::string(words)};
  SourceWords source;
  source.entry = entry.empty() ? cut.entry : entry;
  source.words = absl::StrCat(WordsName(source.entry), " ", cut.clauses);
  source.launches = {{.entry = source.entry, .clauses = "", .cooperative = cut.cooperative}};
  out->source = std::move(source);
  out->from = "--words";
}

absl::Status AddGlobals(const CodeFlags& flags, SourceWords* source) {
  for (const std::string& text : flags.globals) {
    const std::size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
      return UsageError(absl::StrCat("--global: want NAME=FROM, got '", text, "'"));
    }
    source->globals.push_back({text.substr(0, at), text.substr(at + 1)});
  }
  return absl::OkStatus();
}

absl::StatusOr<Description> Describe(const CodeTarget& target, const CodeFlags& flags) {
  Description out;
  GC_ASSIGN_OR_RETURN(out.overrides, Overrides(flags));
  GC_ASSIGN_OR_RETURN(const std::vector<SourceWords> all, WordsInFile(target.file));
  if (!flags.words.empty()) {
    TakeWords(flags, target.entry, &out);
  } else if (const SourceWords* found = FindSourceWords(all, target.entry); found != nullptr) {
    out.source = *found;
    out.from = absl::StrCat(target.file, ":", found->line);
  } else {
    out.source.launches.push_back({.entry = target.entry, .clauses = "", .cooperative = false});
  }
  GC_RETURN_IF_ERROR(AddGlobals(flags, &out.source));
  if (out.source.launches.size() > 1 && (!out.overrides.empty() || flags.cooperative)) {
    return UsageError("flags of a launch are for kernels of one launch; this one has several");
  }
  if (flags.cooperative) out.source.launches[0].cooperative = true;
  return out;
}

std::string EntryNames(const ModuleFacts& facts) {
  return absl::StrJoin(facts.entries, ", ", [](std::string* out, const ModuleEntry& entry) {
    absl::StrAppend(out, Escape(entry.display));
  });
}

absl::StatusOr<const ModuleEntry*> FindEntry(const ModuleFacts& facts, const std::string& wanted) {
  if (wanted.empty() && facts.entries.size() == 1) return &facts.entries[0];
  const std::vector<const ModuleEntry*> found = FindEntries(facts, wanted);
  if (found.size() == 1) return found[0];
  if (found.size() > 1) {
    return UsageError(absl::StrCat("'", Escape(wanted), "' is ", found.size(),
                                   " kernels in this file: name one of ", LinkerNames(found),
                                   ", in its `// gridclock:` comments too"));
  }
  std::vector<const ModuleEntry*> alike;
  for (const ModuleEntry& entry : facts.entries) {
    if (EntryNameAlone(entry.display) == wanted) alike.push_back(&entry);
  }
  if (alike.size() == 1) return alike[0];
  return UsageError(
      wanted.empty() ? absl::StrCat("which kernel? Say FILE:ENTRY with one of ", EntryNames(facts))
                     : absl::StrCat("no kernel '", Escape(wanted), "' in this file; it has ",
                                    EntryNames(facts)));
}

// The tensors and names of a call whose words are not known yet.
absl::StatusOr<UnwordedCall> CallOf(const std::vector<std::string>& words) {
  KernelSpec shape;  // Its inputs are called like the tensors of the call.
  Words sorted;
  UnwordedCall out;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos)
      return UsageError(absl::StrCat("want NAME=VALUE, got '", word, "'"));
    const std::string name = WordsName(word.substr(0, at)), value = word.substr(at + 1);
    auto source = ParseSource(value);
    if (!source.ok() && NamesFile(value)) {
      return UsageError(absl::StrCat(name, ": ", source.status().message()));
    }
    const bool tensor = source.ok() && (!source->path.empty() || source->spec.has_value());
    if (!tensor) {
      out.attributes.push_back(name);
      continue;
    }
    shape.inputs.push_back({.name = name, .elem = "", .dims = {}, .over = ""});
    sorted.operands.push_back({name, {*std::move(source)}});
  }
  GC_ASSIGN_OR_RETURN(Inputs inputs, MakeInputs(shape, sorted, {}, {}));
  for (CallInput& input : inputs.inputs) out.inputs.push_back({input.name, std::move(input.value)});
  return out;
}

absl::StatusOr<std::string> Infer(const Session& session, const ModuleFacts& facts,
                                  const SourceWords& source,
                                  const std::vector<std::string>& words) {
  GC_ASSIGN_OR_RETURN(const ModuleEntry* entry, FindEntry(facts, source.launches[0].entry));
  GC_ASSIGN_OR_RETURN(const UnwordedCall call, CallOf(words));
  auto inferred = InferWords(*entry, call);
  if (!inferred.ok()) {
    return UsageError(absl::StrCat(inferred.status().message(),
                                   "; say it with --words, or in a comment of the source: "
                                   "// gridclock: ..."));
  }
  if (!session.options.json) session.console.err << "words inferred: " << *inferred << "\n";
  return inferred;
}

absl::Status CheckLaunched(const Subject& subject, const std::string& overrides) {
  if (subject.program->launches_size() > 1) return absl::OkStatus();
  GC_ASSIGN_OR_RETURN(const Clauses own, ParseClauses(overrides));
  const Clauses& words = subject.spec.clauses;
  const bool grid = !own.grid.empty() || !words.grid.empty();
  const bool block = !own.block.empty() || !words.block.empty();
  if (grid && block) return absl::OkStatus();
  const std::string size =
      subject.spec.inputs.empty()
          ? std::string("4")
          : absl::StrCat("'ceil_div(numel(", subject.spec.inputs[0].name, "), 256)'");
  return UsageError(absl::StrCat("how is '", subject.spec.name, "' launched? Say ",
                                 grid ? "" : absl::StrCat("--grid, for example --grid ", size),
                                 grid || block ? "" : ", and ",
                                 block ? "" : "--block, as in --block 256"));
}

absl::StatusOr<Subject> Assemble(const v1::Module& module, const ModuleFacts& facts,
                                 const Description& description, std::string words) {
  Subject out;
  auto spec = ParseKernelSpec(words);
  if (!spec.ok()) {
    return UsageError(absl::StrCat(description.from, ": ", spec.status().message()));
  }
  out.spec = *std::move(spec);
  v1::Program& program = out.program.emplace();
  program.set_words(std::move(words));
  for (const SourceLaunch& launch : description.source.launches) {
    GC_ASSIGN_OR_RETURN(const ModuleEntry* entry, FindEntry(facts, launch.entry));
    v1::Program::Launch* to = program.add_launches();
    to->set_module(module.id());
    to->set_entry(entry->name);
    to->set_words(absl::StrCat(launch.clauses, description.overrides));
    to->set_cooperative(launch.cooperative);
  }
  for (const SourceGlobal& global : description.source.globals) {
    v1::Program::Global* to = program.add_globals();
    to->set_module(module.id());
    to->set_name(global.name);
    to->set_from(global.from);
  }
  GC_RETURN_IF_ERROR(CheckLaunched(out, description.overrides));
  return out;
}

absl::StatusOr<Subject> Submit(const Session& session, const Client& client,
                               const CodeTarget& target, const CodeFlags& flags,
                               const std::vector<std::string>& words, UsedModule* used) {
  GC_ASSIGN_OR_RETURN(const Description description, Describe(target, flags));
  GC_ASSIGN_OR_RETURN(
      const v1::Module module,
      MakeModule(session, client, flags.source,
                 {.file = target.file, .instances = TemplatesOf({&description.source, 1})}));
  if (used != nullptr) *used = {module.id(), module.origin() == v1::Module::COMPILED};
  GC_ASSIGN_OR_RETURN(const ModuleFacts facts, Decode(module));
  std::string text = description.source.words;
  if (text.empty()) {
    GC_ASSIGN_OR_RETURN(text, Infer(session, facts, description.source, words));
  }
  return Assemble(module, facts, description, std::move(text));
}

// A flag that is given and says something of a kernel of a file; "" if none is.
std::string FlagForFiles(const CodeFlags& flags) {
  const SourceFlags& source = flags.source;
  const std::pair<const char*, bool> given[] = {{"--words", !flags.words.empty()},
                                                {"--grid", !flags.grid.empty()},
                                                {"--block", !flags.block.empty()},
                                                {"--cluster", !flags.cluster.empty()},
                                                {"--shared", !flags.shared.empty()},
                                                {"--params", !flags.params.empty()},
                                                {"--global", !flags.globals.empty()},
                                                {"--cooperative", flags.cooperative},
                                                {"--arch", !source.arch.empty()},
                                                {"--std", !source.standard.empty()},
                                                {"-D", !source.defines.empty()},
                                                {"--fast-math", source.fast_math},
                                                {"--no-fmad", source.no_fmad},
                                                {"--line-info", source.line_info},
                                                {"--max-registers", source.max_registers != 0}};
  const auto* const found =
      std::find_if(std::begin(given), std::end(given), [](const auto& one) { return one.second; });
  return found == std::end(given) ? "" : found->first;
}

}  // namespace

void AddCodeFlags(CLI::App& app, CodeFlags* flags) {
  AddSourceFlags(app, &flags->source);
  app.add_option("--words", flags->words);
  app.add_option("--grid", flags->grid);
  app.add_option("--block", flags->block);
  app.add_option("--shared", flags->shared);
  app.add_option("--cluster", flags->cluster);
  app.add_option("--params", flags->params);
  app.add_option("--global", flags->globals)->allow_extra_args(false);
  app.add_flag("--cooperative", flags->cooperative);
}

absl::StatusOr<std::vector<SourceWords>> WordsInFile(const std::string& file) {
  if (absl::EndsWith(file, ".cubin")) return std::vector<SourceWords>{};
  const auto opened = MappedFile::Open(file);
  if (!opened.ok()) return Annotate(opened.status(), file);
  const auto& mapped = *opened;
  auto read = ReadSourceWords(absl::string_view(
      reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()));
  if (!read.ok()) return Annotate(read.status(), file);
  return read;
}

std::optional<CodeTarget> ParseCodeTarget(absl::string_view text) {
  for (const absl::string_view ending : {".cu", ".ptx", ".cubin"}) {
    for (std::size_t at = text.find(ending); at != absl::string_view::npos;
         at = text.find(ending, at + 1)) {
      const std::size_t end = at + ending.size();
      if (end == text.size()) return CodeTarget{std::string(text), ""};
      if (text[end] != ':') continue;
      return CodeTarget{std::string(text.substr(0, end)), std::string(text.substr(end + 1))};
    }
  }
  return std::nullopt;
}

void Subject::NameIn(RunCall* call) const {
  call->program = program;
  call->kernel = program.has_value() ? "" : spec.name;
  call->variant = variant;
}

std::vector<std::string> Subject::Renamed(std::vector<std::string> words) const {
  const auto has = [](const auto& all, absl::string_view name) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  };
  const auto known = [&](absl::string_view name) {
    return has(spec.inputs, name) || has(spec.outputs, name) || has(spec.attributes, name);
  };
  for (std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || !program.has_value() || known(word.substr(0, at))) continue;
    const std::string name = WordsName(word.substr(0, at));
    if (known(name)) word = absl::StrCat(name, word.substr(at));
  }
  return words;
}

absl::StatusOr<Subject> FindSubject(const Session& session, const Client& client,
                                    const std::string& kernel, const CodeFlags& flags,
                                    const std::vector<std::string>& words, UsedModule* used) {
  if (const auto target = ParseCodeTarget(kernel)) {
    return Submit(session, client, *target, flags, words, used);
  }
  if (const std::string flag = FlagForFiles(flags); !flag.empty()) {
    return UsageError(absl::StrCat(flag, ": for kernels of a file, as in k.cu:ENTRY; '", kernel,
                                   "' is one of the catalogue"));
  }
  const KernelName name = ParseKernelName(kernel);
  GC_ASSIGN_OR_RETURN(KernelSpec spec, client.GetKernel(name.kernel));
  return Subject{.spec = std::move(spec), .variant = name.variant, .program = std::nullopt};
}

std::vector<std::string> OutputNames(const KernelSpec& spec) {
  std::vector<std::string> names;
  for (const OperandSpec& input : spec.inputs) {
    if (input.inout) names.push_back(input.name);
  }
  for (const OperandSpec& output : spec.outputs) names.push_back(output.name);
  return names;
}

}  // namespace gridclock::cli
