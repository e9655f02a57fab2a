// Files that are read again while the server runs: what they held stays in force until they can be
// used.
#ifndef GRIDCLOCK_SERVER_CORE_RELOADER_H_
#define GRIDCLOCK_SERVER_CORE_RELOADER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

// Thread-safe.
class Reloader {
 public:
  struct Part {
    std::string name;
    absl::Status last;  // Why the last try changed nothing; OK: what was read is in force.
    absl::Time read;    // When what is in force was read.
  };
  // `read` reads the files and puts them in force, or changes nothing and says why. Never called by
  // two threads at once.
  using Read = std::function<absl::Status()>;

  // `now`: by the calendar.
  explicit Reloader(std::function<absl::Time()> now) : now_(std::move(now)) {}

  // A part that was read just now for the first time.
  void Add(std::string name, Read read) ABSL_LOCKS_EXCLUDED(mutex_);
  // Every part, whatever becomes of the others.
  std::vector<Part> Reload() ABSL_LOCKS_EXCLUDED(reading_, mutex_);
  std::vector<Part> parts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::function<absl::Time()> now_;
  Mutex reading_;  // Held while files are read; mutex_ is not.
  mutable Mutex mutex_;
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Read> reads_ ABSL_GUARDED_BY(mutex_);  // Of the part at the same place.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_RELOADER_H_
