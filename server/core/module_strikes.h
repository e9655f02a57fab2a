// Modules whose code ended the process that ran it, and from when on they are run no more.
#ifndef GRIDCLOCK_SERVER_CORE_MODULE_STRIKES_H_
#define GRIDCLOCK_SERVER_CORE_MODULE_STRIKES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace gridclock {

// Thread-safe. An id is a module of one principal, so that nobody is struck by another's.
class ModuleStrikes {
 public:
  static constexpr int kMost = 3;
  // Of all clients. Beyond it the one that was struck least recently is forgotten.
  static constexpr std::size_t kMostModules = 4096;

  // `why`: what ended the process: "signal 11".
  void Add(absl::string_view module, absl::string_view why) ABSL_LOCKS_EXCLUDED(mutex_);
  // FAILED_PRECONDITION (QUARANTINED) from the kMost-th on.
  absl::Status Check(absl::string_view module) const ABSL_LOCKS_EXCLUDED(mutex_);
  // How many are run no more.
  std::size_t quarantined() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Struck {
    std::string module, why;
    int times = 0;
  };
  mutable Mutex mutex_;
  std::deque<Struck> struck_ ABSL_GUARDED_BY(mutex_);  // The least recently struck first.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_MODULE_STRIKES_H_
