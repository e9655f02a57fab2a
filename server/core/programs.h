// From the texts of a request to a program whose modules are here and whose entries exist.
#ifndef GRIDCLOCK_SERVER_CORE_PROGRAMS_H_
#define GRIDCLOCK_SERVER_CORE_PROGRAMS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/types/job.h"
#include "server/core/module_strikes.h"
#include "server/core/module_table.h"

namespace gridclock {

// Thread-safe. What was read is kept for a while: who times a kernel sends the same words again.
class Programs {
 public:
  static constexpr std::size_t kMostKept = 64;
  // Words that are longer than this together take milliseconds of the calling thread, and none of
  // them need hold: so many of one principal are read at once.
  static constexpr std::size_t kLongWords = 4 * 1024;
  static constexpr int kMostReading = 2;

  // A module that is not in memory, from where it is kept; NOT_FOUND if it is nowhere. Thread-safe.
  using Fetch = std::function<absl::StatusOr<ModuleCode>(const std::string& principal,
                                                         const std::string& id)>;

  // Both outlive this.
  Programs(ModuleTable& modules, const ModuleStrikes& strikes, Fetch fetch = nullptr)
      : modules_(modules), strikes_(strikes), fetch_(std::move(fetch)) {}

  // Of request.program, as CompleteProgram gives it. NOT_FOUND for a module (NO_MODULE) or an entry
  // (NO_ENTRY) that is not there, FAILED_PRECONDITION for a module that did not compile
  // (COMPILE_FAILED) or is run no more (QUARANTINED), INVALID_ARGUMENT for words that do not hold
  // or, where there are none, cannot be inferred; RESOURCE_EXHAUSTED (QUEUE_FULL, with retry_after)
  // beyond kMostReading.
  absl::StatusOr<std::shared_ptr<const JobProgram>> Find(const JobRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Of request.reference->program, likewise; null if it has none. Fields begin with "reference.".
  absl::StatusOr<std::shared_ptr<const JobProgram>> FindReference(const JobRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What was kept of programs with this module: it is deleted, or its memory is wanted. Jobs keep
  // what they have.
  void Forget(absl::string_view module) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Kept = std::shared_ptr<const JobProgram>;

  absl::StatusOr<Kept> Read(const JobRequest& request) const;
  absl::StatusOr<Kept> ReadInTurn(const JobRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // From memory, or fetched there; null if it is nowhere.
  absl::StatusOr<ModulePtr> FindModule(const std::string& principal, const std::string& id) const;
  // Adds the launch to `out`; `module` and `entry` are those that it is of.
  absl::Status ReadLaunch(const JobRequest& request, std::size_t index, JobProgram& out,
                          ModulePtr& module, const ModuleEntry*& entry) const;
  // What was kept under this key; null if there is none, or its modules are not those that the
  // principal has in memory now.
  Kept FindKept(const JobRequest& request, const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckStrikes(const JobProgram& program) const;

  ModuleTable& modules_;
  const ModuleStrikes& strikes_;
  const Fetch fetch_;
  Mutex mutex_;
  std::map<std::string, Kept, std::less<>> kept_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> reading_ ABSL_GUARDED_BY(mutex_);  // Long words, by principal.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_PROGRAMS_H_
