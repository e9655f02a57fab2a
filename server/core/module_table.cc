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

absl::Status NoMemory(std::uint64_t used) {
  return WithDetails(absl::ResourceExhaustedError(
                         absl::StrCat("the modules of this client, or the ", used,
                                      " bytes of all clients' modules, leave no room (limit "
                                      "module_memory_bytes); delete some")),
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
      memory_("module_memory_bytes", static_cast<std::uint64_t>(limits.module_memory_bytes)),
      most_failure_bytes_(static_cast<std::uint64_t>(limits.module_memory_bytes) / kFailureShare),
      failure_memory_("module_memory_bytes", most_failure_bytes_) {}

ModulePtr ModuleTable::Find(absl::string_view principal, absl::string_view id) const {
  const MutexLock lock(mutex_);
  if (const auto owner = modules_.find(principal); owner != modules_.end()) {
    const auto found = Position(owner->second, id);
    if (found != owner->second.end()) return found->module;
  }
  for (const Failure& failure : failures_) {
    if (failure.principal == principal && failure.entry.id == id) return failure.entry.module;
  }
  return nullptr;
}

absl::Status ModuleTable::Quota(absl::string_view principal) const {
  const auto owner = modules_.find(principal);
  if (owner == modules_.end() || owner->second.size() < most_) return absl::OkStatus();
  return WithDetails(
      absl::ResourceExhaustedError(absl::StrCat("this client has ", owner->second.size(),
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
  if (const auto owner = modules_.find(principal);
      owner != modules_.end() && Position(owner->second, id) != owner->second.end()) {
    return absl::OkStatus();
  }
  GC_RETURN_IF_ERROR(Quota(principal));
  if (!memory_.Take(principal, BytesOf(*module)).ok()) return NoMemory(memory_.used());
  modules_[std::string(principal)].push_back({id, std::move(module)});
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
  const auto found = Position(owner->second, id);
  if (found == owner->second.end()) return failed;
  memory_.Return(principal, BytesOf(*found->module));
  owner->second.erase(found);
  if (owner->second.empty()) modules_.erase(owner);
  return true;
}

std::vector<std::pair<std::string, ModulePtr>> ModuleTable::List(
    absl::string_view principal) const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<std::string, ModulePtr>> out;
  const auto owner = modules_.find(principal);
  if (owner == modules_.end()) return out;
  for (const Entry& entry : owner->second) out.emplace_back(entry.id, entry.module);
  return out;
}

ModuleTable::Usage ModuleTable::usage() const {
  const MutexLock lock(mutex_);
  Usage out{.bytes = memory_.used() + failure_memory_.used()};
  for (const auto& [principal, entries] : modules_) {
    out.modules += entries.size();
    out.most_of_one = std::max(out.most_of_one, entries.size());
  }
  return out;
}

}  // namespace gridclock
