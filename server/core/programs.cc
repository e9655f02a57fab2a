#include "server/core/programs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/find_entry.h"
#include "proto/types/infer_words.h"
#include "proto/types/near_names.h"
#include "proto/types/quote.h"
#include "server/core/reference.h"

namespace gridclock {
namespace {

// Longer words are read each time.
constexpr std::size_t kLongestKey = 16 * 1024;

std::string LaunchField(std::size_t index, absl::string_view member) {
  return absl::StrCat("program.launches[", index, "].", member);
}

absl::Status NoModule(absl::string_view id, absl::string_view field) {
  return WithDetails(
      absl::NotFoundError(absl::StrCat(field, ": no module ", Quote(id),
                                       " of this client; Compile and Load make one")),
      {.reason = "NO_MODULE",
       .field = std::string(field),
       .retry_after = std::nullopt,
       .metadata = {}});
}

absl::Status NotCompiled(absl::string_view id, absl::string_view field) {
  return WithDetails(
      absl::FailedPreconditionError(absl::StrCat(
          field, ": module ", Quote(id), " did not compile; Get shows the log of its compile")),
      {.reason = "COMPILE_FAILED",
       .field = std::string(field),
       .retry_after = std::nullopt,
       .metadata = {{"module", std::string(id)}}});
}

absl::Status NoEntry(const ModuleFacts& facts, const ProgramRequest::Launch& launch,
                     absl::string_view field) {
  constexpr std::size_t kListed = 8;
  std::vector<absl::string_view> names;
  for (const ModuleEntry& entry : facts.entries) names.push_back(entry.display);
  std::string near = NearestNames(launch.entry, names);
  std::string known;
  for (std::size_t i = 0; i < std::min(kListed, names.size()); ++i) {
    absl::StrAppend(&known, i == 0 ? "" : ", ", Quote(names[i]));
  }
  if (names.size() > kListed) absl::StrAppend(&known, ", ...");
  return WithDetails(
      absl::NotFoundError(absl::StrCat(
          field, ": no entry ", Quote(launch.entry), " in module ", Quote(launch.module),
          near.empty() ? "; it has " : absl::StrCat("; the nearest are ", near, "; it has "),
          known.empty() ? "none" : known)),
      {.reason = "NO_ENTRY",
       .field = std::string(field),
       .retry_after = std::nullopt,
       .metadata = {}});
}

absl::StatusOr<const ModuleEntry*> FindEntry(const ModuleFacts& facts,
                                             const ProgramRequest::Launch& launch,
                                             absl::string_view field) {
  const std::vector<const ModuleEntry*> found = FindEntries(facts, launch.entry);
  if (found.empty()) return NoEntry(facts, launch, field);
  if (found.size() == 1) return found[0];
  return InvalidField(field, absl::StrCat("want one entry, ", Quote(launch.entry), " is ",
                                          found.size(), " in module ", Quote(launch.module),
                                          ": name one of ", LinkerNames(found)));
}

// The words of the request, or those that the entry of its only launch allows to infer.
absl::StatusOr<std::string> WordsOf(const JobRequest& request, const ModuleEntry& entry) {
  const ProgramRequest& program = *request.program;
  if (!program.words.empty()) return program.words;
  if (program.launches.size() != 1) {
    return InvalidField("program.words",
                        absl::StrCat("want them where there are several launches, got none for ",
                                     program.launches.size()));
  }
  UnwordedCall call;
  for (const InputRequest& input : request.inputs) {
    if (!IsExpected(request, input.operand.name)) call.inputs.push_back(input.operand);
  }
  for (const NamedAttribute& attribute : request.attributes) {
    call.attributes.push_back(attribute.name);
  }
  for (const OutputRequest& output : request.outputs) call.outputs.push_back(output.name);
  return InferWords(entry, call);
}

absl::Status InField(const absl::Status& status, absl::string_view field) {
  return WithField(WithReasonIfNone(Annotate(status, field), "BAD_VALUE"), field);
}

std::size_t WordsBytes(const ProgramRequest& program) {
  std::size_t bytes = program.words.size();
  for (const ProgramRequest::Launch& launch : program.launches) bytes += launch.words.size();
  return bytes;
}

absl::Status Busy() {
  return WithDetails(absl::ResourceExhaustedError(
                         absl::StrCat("program: the server reads ", Programs::kMostReading,
                                      " others of this client with words "
                                      "of more than ",
                                      Programs::kLongWords, " bytes; try again later")),
                     {.reason = "QUEUE_FULL",
                      .field = "program",
                      .retry_after = absl::Milliseconds(20),
                      .metadata = {}});
}

// What tells two programs of one principal apart. Words that are inferred follow from the call too.
std::string KeyOf(const JobRequest& request) {
  const ProgramRequest& program = *request.program;
  if (program.words.empty()) return "";
  std::string key;
  const auto add = [&key](absl::string_view text) {
    absl::StrAppend(&key, text.size(), ":", text);
  };
  add(request.principal);
  add(program.words);
  for (const ProgramRequest::Launch& launch : program.launches) {
    key += launch.cooperative ? 'C' : 'L';
    add(launch.module);
    add(launch.entry);
    add(launch.words);
  }
  for (const ProgramRequest::Global& global : program.globals) {
    key += 'G';
    add(global.module);
    add(global.name);
    add(global.from);
  }
  return key.size() <= kLongestKey ? key : "";
}

}  // namespace

absl::Status Programs::CheckStrikes(const JobProgram& program) const {
  for (const ProgramModule& module : program.modules) {
    GC_RETURN_IF_ERROR(strikes_.Check(module.id));
  }
  return absl::OkStatus();
}

Programs::Kept Programs::FindKept(const JobRequest& request, const std::string& key) {
  Kept kept;
  {
    const MutexLock lock(mutex_);
    const auto found = kept_.find(key);
    if (found == kept_.end()) return nullptr;
    kept = found->second;
  }
  // Not under the lock: the table calls Forget under its own.
  for (const ProgramModule& module : kept->modules) {
    const ModulePtr found = modules_.Find(request.principal, module.id);
    if (found == nullptr || (module.code != nullptr && found != module.code)) return nullptr;
  }
  return kept;
}

absl::StatusOr<Programs::Kept> Programs::ReadInTurn(const JobRequest& request) {
  if (WordsBytes(*request.program) <= kLongWords) return Read(request);
  {
    const MutexLock lock(mutex_);
    int& reading = reading_[request.principal];
    if (reading == kMostReading) return Busy();
    ++reading;
  }
  const absl::Cleanup done = [&] {
    const MutexLock lock(mutex_);
    const auto own = reading_.find(request.principal);
    if (--own->second == 0) reading_.erase(own);
  };
  return Read(request);
}

absl::StatusOr<std::shared_ptr<const JobProgram>> Programs::Find(const JobRequest& request) {
  const std::string key = KeyOf(request);
  Kept program = key.empty() ? nullptr : FindKept(request, key);
  const bool known = program != nullptr;
  if (!known) {
    GC_ASSIGN_OR_RETURN(program, ReadInTurn(request));
  }
  GC_RETURN_IF_ERROR(CheckStrikes(*program));
  if (key.empty() || known) return program;
  const MutexLock lock(mutex_);
  if (kept_.size() >= kMostKept) kept_.clear();
  kept_.insert_or_assign(key, program);
  return program;
}

absl::StatusOr<std::shared_ptr<const JobProgram>> Programs::FindReference(
    const JobRequest& request) {
  if (!request.reference || !request.reference->program) return nullptr;
  JobRequest asked = request;
  asked.program = request.reference->program;
  asked.outputs.clear();  // Their names are the program's.
  for (const NamedAttribute& own : request.reference->attributes) {
    const auto same = [&](const NamedAttribute& other) { return other.name == own.name; };
    if (std::none_of(asked.attributes.begin(), asked.attributes.end(), same)) {
      asked.attributes.push_back(own);
    }
  }
  auto found = Find(asked);
  if (found.ok()) return found;
  const std::string field = absl::StrCat("reference.", DetailsOf(found.status()).field);
  return WithField(Annotate(found.status(), "reference"), field);
}

void Programs::Forget(absl::string_view module) {
  MutexLock lock(mutex_);
  std::erase_if(kept_, [&](const auto& kept) { return HasModule(*kept.second, module); });
}

absl::StatusOr<ModulePtr> Programs::FindModule(const std::string& principal,
                                               const std::string& id) const {
  ModulePtr found = modules_.Find(principal, id);
  if (found != nullptr || fetch_ == nullptr) return found;
  auto fetched = fetch_(principal, id);
  if (!fetched.ok()) return nullptr;
  found = std::make_shared<const ModuleCode>(*std::move(fetched));
  GC_RETURN_IF_ERROR(modules_.Add(principal, id, found));
  // Another call may have been quicker: all have the same one.
  return modules_.Find(principal, id);
}

absl::Status Programs::ReadLaunch(const JobRequest& request, std::size_t index, JobProgram& out,
                                  ModulePtr& module, const ModuleEntry*& entry) const {
  const ProgramRequest::Launch& launch = request.program->launches[index];
  const std::string field = LaunchField(index, "module");
  GC_RETURN_IF_ERROR(CheckSymbol(field, launch.module));
  GC_RETURN_IF_ERROR(CheckSymbol(LaunchField(index, "entry"), launch.entry));
  GC_ASSIGN_OR_RETURN(module, FindModule(request.principal, launch.module));
  if (module == nullptr) return NoModule(launch.module, field);
  if (module->facts.failed) return NotCompiled(launch.module, field);
  GC_ASSIGN_OR_RETURN(entry, FindEntry(module->facts, launch, LaunchField(index, "entry")));
  if (!HasModule(out, launch.module)) {
    const bool native = module->facts.kind == ModuleKind::kTestNative;
    out.modules.push_back({.id = launch.module,
                           .kind = native ? ModuleKind::kTestNative : ModuleKind::kCubin,
                           .code = native ? nullptr : module});
  }
  auto clauses = ParseClauses(launch.words);
  if (!clauses.ok()) return InField(clauses.status(), LaunchField(index, "words"));
  out.program.launches.push_back({.module = launch.module,
                                  .entry = entry->name,
                                  .clauses = *std::move(clauses),
                                  .cooperative = launch.cooperative});
  return absl::OkStatus();
}

absl::StatusOr<Programs::Kept> Programs::Read(const JobRequest& request) const {
  const ProgramRequest& asked = *request.program;
  if (asked.launches.empty()) {
    return InvalidField("program.launches",
                        absl::StrCat("want 1 to ", kMostLaunches, ", got none"));
  }
  auto out = std::make_shared<JobProgram>();
  ModulePtr module;
  const ModuleEntry* entry = nullptr;
  for (std::size_t i = 0; i < asked.launches.size(); ++i) {
    GC_RETURN_IF_ERROR(ReadLaunch(request, i, *out, module, entry));
  }
  for (const ProgramRequest::Global& global : asked.globals) {
    out->program.globals.push_back(
        {.module = global.module, .name = global.name, .from = global.from});
  }
  const absl::StatusOr<std::string> words = WordsOf(request, *entry);
  if (!words.ok()) return WithReasonIfNone(words.status(), "BAD_VALUE");
  auto spec = ParseKernelSpec(*words);
  if (!spec.ok()) return InField(spec.status(), "program.words");
  out->program.words = *std::move(spec);
  auto program = CompleteProgram(std::move(out->program));
  if (!program.ok()) return WithReasonIfNone(program.status(), "BAD_VALUE");
  out->program = *std::move(program);
  return Kept(std::move(out));
}

}  // namespace gridclock
