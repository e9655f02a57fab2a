// The modules in memory: whose they are, how many each principal may have, and which go when there
// is no room for another's.
#ifndef GRIDCLOCK_SERVER_CORE_MODULE_TABLE_H_
#define GRIDCLOCK_SERVER_CORE_MODULE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/types/module.h"
#include "server/core/byte_budget.h"
#include "server/core/limits.h"

namespace gridclock {

using ModulePtr =
    std::shared_ptr<const ModuleCode>;  // Of the table, and of calls and jobs that use it.

// Thread-safe. What belongs to another principal is as if it were not there.
class ModuleTable {
 public:
  explicit ModuleTable(const Limits& limits);

  // Who keeps modules that no call or job needs lets this one go. Called under this table's lock,
  // before the module is dropped for want of room. Set once, before the table is shared.
  using Release = std::function<void(absl::string_view id)>;
  void SetRelease(Release release) { release_ = std::move(release); }

  // Null if this principal has no such module, whole or failed. It is then the last that was used.
  ModulePtr Find(absl::string_view principal, absl::string_view id) ABSL_LOCKS_EXCLUDED(mutex_);
  // RESOURCE_EXHAUSTED (MODULE_QUOTA) if this principal can have no further module.
  absl::Status CheckQuota(absl::string_view principal) const ABSL_LOCKS_EXCLUDED(mutex_);
  // As CheckQuota, or MEMORY_FULL beyond this principal's half of the bytes. Where all clients'
  // modules leave no room, whoever has most of them with this one loses what it used longest ago,
  // unless a call or job uses it: MEMORY_FULL only if that makes none. A failed module counts for
  // no quota: of those the oldest go, and their bytes are a sixteenth of all modules', beside them.
  // One that is there already stays.
  absl::Status Add(absl::string_view principal, const std::string& id, ModulePtr module)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // False if it was not there.
  bool Remove(absl::string_view principal, absl::string_view id) ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order in which they came, without those that failed.
  std::vector<std::pair<std::string, ModulePtr>> List(absl::string_view principal) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct Usage {
    std::size_t modules = 0;
    std::size_t most_of_one = 0;  // The principal with the most.
    std::uint64_t bytes = 0;
  };
  Usage usage() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string id;
    ModulePtr module;
    std::uint64_t used = 0;  // The larger, the later.
  };
  using Entries = std::deque<Entry>;
  struct Owner {
    Entries entries;
    std::uint64_t bytes = 0;
  };
  using Owners = std::map<std::string, Owner, std::less<>>;
  struct Failure {
    std::string principal;
    Entry entry;
  };
  using Failures = std::deque<Failure>;
  absl::Status Quota(absl::string_view principal) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUsed(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Owners::iterator owner, Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if there is nothing that may go for this principal.
  bool DropOneFor(absl::string_view principal, std::uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFailure(absl::string_view principal, Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropFailure(Failures::iterator failure) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RemoveFailure(absl::string_view principal, absl::string_view id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::size_t most_;
  const std::uint64_t most_bytes_;
  ByteBudget memory_;
  const std::uint64_t most_failure_bytes_;
  ByteBudget failure_memory_;
  Release release_;
  mutable Mutex mutex_;
  Owners modules_ ABSL_GUARDED_BY(mutex_);  // By principal, its oldest first.
  std::uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  Failures failures_ ABSL_GUARDED_BY(mutex_);  // Oldest first.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_MODULE_TABLE_H_
