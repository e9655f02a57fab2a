// From the texts of a request to a program whose modules are here and whose entries exist.
#ifndef GRIDCLOCK_SERVER_CORE_PROGRAMS_H_
#define GRIDCLOCK_SERVER_CORE_PROGRAMS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

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

  // Both outlive this.
  Programs(const ModuleTable& modules, const ModuleStrikes& strikes)
      : modules_(modules), strikes_(strikes) {}

  // Of request.program, as CompleteProgram gives it. NOT_FOUND for a module (NO_MODULE) or an entry
  // (NO_ENTRY) that is not there, FAILED_PRECONDITION for a module that did not compile
  // (COMPILE_FAILED) or is run no more (QUARANTINED), INVALID_ARGUMENT for words that do not hold
  // or, where there are none, cannot be inferred.
  absl::StatusOr<std::shared_ptr<const JobProgram>> Find(const JobRequest& request)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What was kept of programs with this module: it is deleted.
  void Forget(absl::string_view module) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Kept = std::shared_ptr<const JobProgram>;

  absl::StatusOr<Kept> Read(const JobRequest& request) const;
  // Adds the launch to `out`; `module` and `entry` are those that it is of.
  absl::Status ReadLaunch(const JobRequest& request, std::size_t index, JobProgram& out,
                          ModulePtr& module, const ModuleEntry*& entry) const;
  // The modules are those that the principal has now, and none is in quarantine.
  absl::Status Check(const JobRequest& request, const JobProgram& program) const;

  const ModuleTable& modules_;
  const ModuleStrikes& strikes_;
  Mutex mutex_;
  std::map<std::string, Kept, std::less<>> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_PROGRAMS_H_
