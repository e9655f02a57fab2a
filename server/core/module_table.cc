#include "server/core/module_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::size_t kFailuresOfOne = 64;
constexpr std::size_t kFailures = 1024;
constexpr std::uint64_t kFailureShare = 16;  // Their part of the bytes of modules, beside those.

// What it takes in memory, near enough.
std::uint64_t BytesOf(const ModuleCode& module) {
  constexpr std::uint64_t kOfModule = 1024;
  const ModuleFacts& facts = module.facts;
  std::uint64_t bytes = kOfModule + module.ptx.size() + module.cubin.size() + facts.log.size() +
                        facts.name.size() + facts.toolchain.size();
  for (const ModuleEntry& entry : facts.entries) {
    bytes += sizeof(entry) + entry.name.size() + entry.display.size() +
             entry.required_block.size() * sizeof(entry.required_block[0]) +
             entry.parameters.size() * sizeof(EntryParameter);
    for (const EntryParameter& parameter : entry.parameters) {
      bytes += parameter.type.size() + parameter.name.size();
    }
  }
  for (const SourceNote& note : facts.notes) bytes += sizeof(note) + note.text.size();
  for (const CompileStage& stage : facts.stages) bytes += sizeof(stage) + stage.name.size();
  return bytes;
}

absl::Status NoMemory(std::uint64_t bytes, std::uint64_t own, std::uint64_t most) {
  return WithDetails(absl::ResourceExhaustedError(absl::StrCat(
                         "want ", bytes, " bytes for a module; the modules of this client have ",
                         own, ", and of the ", most,
                         " bytes of all modules (limit module_memory_bytes) one client has at most "
                         "half and what others use is not taken from them; delete some")),
                     {.reason = "MEMORY_FULL",
                      .field = "",
                      .retry_after = std::nullopt,
                      .metadata = {{"limit", "module_memory_bytes"}}});
}

template <typename Entries>
auto Position(Entries& entries, absl::string_view id) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.id == id; });
}

}  // namespace

ModuleTable::ModuleTable(const Limits& limits)
    : most_(static_cast<std::size_t>(limits.client_modules)),
      most_bytes_(static_cast<std::uint64_t>(limits.module_memory_bytes)),
      memory_("module_memory_bytes", most_bytes_),
      most_failure_bytes_(most_bytes_ / kFailureShare),
      failure_memory_("module_memory_bytes", most_failure_bytes_) {}

ModulePtr ModuleTable::Find(absl::string_view principal, absl::string_view id) {
  const MutexLock lock(mutex_);
  if (const auto owner = modules_.find(principal); owner != modules_.end()) {
    const auto found = Position(owner->second.entries, id);
    if (found != owner->second.entries.end()) {
      found->used = ++uses_;
      return found->module;
    }
  }
  for (const Failure& failure : failures_) {
    if (failure.principal == principal && failure.entry.id == id) return failure.entry.module;
  }
  return nullptr;
}

absl::Status ModuleTable::Quota(absl::string_view principal) const {
  const auto owner = modules_.find(principal);
  if (owner == modules_.end() || owner->second.entries.size() < most_) return absl::OkStatus();
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat("this client has ", owner->second.entries.size(),
                                                " modules, as many as it may (limit "
                                                "client_modules); delete some")),
      {.reason = "MODULE_QUOTA",
       .field = "",
       .retry_after = std::nullopt,
       .metadata = {{"limit", "client_modules"}, {"value", absl::StrCat(most_)}}});
}

absl::Status ModuleTable::CheckQuota(absl::string_view principal) const {
  const MutexLock lock(mutex_);
  return Quota(principal);
}

// Its code would stay in memory though the table had dropped it.
bool ModuleTable::IsUsed(const Entry& entry) const {
  if (release_ != nullptr) release_(entry.id);
  return entry.module.use_count() > 1;
}

void ModuleTable::Drop(Owners::iterator owner, Entries::iterator entry) {
  const std::uint64_t bytes = BytesOf(*entry->module);
  memory_.Return(owner->first, bytes);
  owner->second.bytes -= bytes;
  owner->second.entries.erase(entry);
  if (owner->second.entries.empty()) modules_.erase(owner);
}

bool ModuleTable::DropOneFor(absl::string_view principal, std::uint64_t bytes) {
  const auto with_new = [&](Owners::iterator owner) {
    return owner->second.bytes + (owner->first == principal ? bytes : 0);
  };
  const auto own = modules_.find(principal);
  // Nobody loses anything for one who then has more.
  const std::uint64_t least = own == modules_.end() ? bytes : with_new(own);
  std::vector<Owners::iterator> owners;
  for (auto owner = modules_.begin(); owner != modules_.end(); ++owner) {
    if (with_new(owner) >= least) owners.push_back(owner);
  }
  std::stable_sort(owners.begin(), owners.end(),
                   [&](auto a, auto b) { return with_new(a) > with_new(b); });
  for (const auto owner : owners) {
    Entries& entries = owner->second.entries;
    auto oldest = entries.end();
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      const bool older = oldest == entries.end() || entry->used < oldest->used;
      if (older && !IsUsed(*entry)) oldest = entry;
    }
    if (oldest == entries.end()) continue;
    Drop(owner, oldest);
    return true;
  }
  return false;
}

void ModuleTable::DropFailure(Failures::iterator failure) {
  failure_memory_.Return(failure->principal, BytesOf(*failure->entry.module));
  failures_.erase(failure);
}

void ModuleTable::AddFailure(absl::string_view principal, Entry entry) {
  const auto same = [&](const Failure& failure) { return failure.principal == principal; };
  const std::uint64_t bytes = BytesOf(*entry.module);
  if (bytes > most_failure_bytes_ / 2) return;
  const auto own =
      static_cast<std::size_t>(std::count_if(failures_.begin(), failures_.end(), same));
  if (own >= kFailuresOfOne) {
    DropFailure(std::find_if(failures_.begin(), failures_.end(), same));
  } else if (failures_.size() >= kFailures) {
    DropFailure(failures_.begin());
  }
  // Its own go first; then the oldest of all.
  while (!failure_memory_.Take(principal, bytes).ok()) {
    const auto oldest = std::find_if(failures_.begin(), failures_.end(), same);
    DropFailure(oldest != failures_.end() ? oldest : failures_.begin());
  }
  failures_.push_back({std::string(principal), std::move(entry)});
}

absl::Status ModuleTable::Add(absl::string_view principal, const std::string& id,
                              ModulePtr module) {
  const MutexLock lock(mutex_);
  if (module->facts.failed) {
    RemoveFailure(principal, id);
    AddFailure(principal, {id, std::move(module)});
    return absl::OkStatus();
  }
  const auto owner = modules_.find(principal);
  const std::uint64_t own = owner == modules_.end() ? 0 : owner->second.bytes;
  if (owner != modules_.end() &&
      Position(owner->second.entries, id) != owner->second.entries.end()) {
    return absl::OkStatus();
  }
  GC_RETURN_IF_ERROR(Quota(principal));
  const std::uint64_t bytes = BytesOf(*module);
  if (own + bytes > most_bytes_ / 2) return NoMemory(bytes, own, most_bytes_);
  while (!memory_.Take(principal, bytes).ok()) {
    if (!DropOneFor(principal, bytes)) return NoMemory(bytes, own, most_bytes_);
  }
  Owner& to = modules_[std::string(principal)];
  to.entries.push_back({id, std::move(module), ++uses_});
  to.bytes += bytes;
  return absl::OkStatus();
}

bool ModuleTable::RemoveFailure(absl::string_view principal, absl::string_view id) {
  const auto found = std::find_if(failures_.begin(), failures_.end(), [&](const Failure& failure) {
    return failure.principal == principal && failure.entry.id == id;
  });
  if (found == failures_.end()) return false;
  DropFailure(found);
  return true;
}

bool ModuleTable::Remove(absl::string_view principal, absl::string_view id) {
  const MutexLock lock(mutex_);
  const bool failed = RemoveFailure(principal, id);
  const auto owner = modules_.find(principal);
  if (owner == modules_.end()) return failed;
  const auto found = Position(owner->second.entries, id);
  if (found == owner->second.entries.end()) return failed;
  Drop(owner, found);
  return true;
}

std::vector<std::pair<std::string, ModulePtr>> ModuleTable::List(
    absl::string_view principal) const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<std::string, ModulePtr>> out;
  const auto owner = modules_.find(principal);
  if (owner == modules_.end()) return out;
  for (const Entry& entry : owner->second.entries) out.emplace_back(entry.id, entry.module);
  return out;
}

ModuleTable::Usage ModuleTable::usage() const {
  const MutexLock lock(mutex_);
  Usage out{.bytes = memory_.used() + failure_memory_.used()};
  for (const auto& [principal, owner] : modules_) {
    out.modules += owner.entries.size();
    out.most_of_one = std::max(out.most_of_one, owner.entries.size());
  }
  return out;
}

}  // namespace gridclock
