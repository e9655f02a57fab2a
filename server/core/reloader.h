// Files that are read again while the server runs: what they held stays in force until they can be
// used.
#ifndef GRIDCLOCK_SERVER_CORE_RELOADER_H_
#define GRIDCLOCK_SERVER_CORE_RELOADER_H_

#include <condition_variable>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

// Thread-safe. Reads on a thread of its own: a file system that does not answer holds up no other.
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
  // Hears of every part, whatever became of the others; or why Stop() ended the wait. From the
  // thread that reads, or that of Stop().
  using Done = std::function<void(const absl::StatusOr<std::vector<Part>>&)>;

  // `now`: by the calendar.
  explicit Reloader(std::function<absl::Time()> now);
  // Waits for what is_reading(), which may never end.
  ~Reloader() = default;
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // A part that was read just now for the first time.
  void Add(std::string name, Read read) ABSL_LOCKS_EXCLUDED(mutex_);
  // OK: `done` is called. UNAVAILABLE (RELOADING) while another reload runs. Never waits.
  absl::Status Reload(Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same without an error; nothing once stopped. False: another runs, and this one follows it,
  // since that may have read what stood there before. Of several that follow there is one, which
  // the last `done` hears.
  bool ReloadNowOrNext(Done done) ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nobody waits for a reload: who does, and who asks for one, hears `why`. When this
  // returns no `done` runs and none will be called.
  void Stop(const absl::Status& why) ABSL_LOCKS_EXCLUDED(ending_, mutex_);
  // Whether a reload runs, or the `done` of one.
  bool is_reading() const ABSL_LOCKS_EXCLUDED(ending_, mutex_);
  std::vector<Part> parts() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Begin(Done done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(const std::stop_token& stop);
  bool WaitForOrder(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void ReadAll() ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(ending_, mutex_);

  const std::function<absl::Time()> now_;
  // Held while a `done` runs; mutex_ is not, as a `done` may lead to another call of ours.
  mutable Mutex ending_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;  // Not held while files are read.
  std::vector<Part> parts_ ABSL_GUARDED_BY(mutex_);
  std::vector<Read> reads_ ABSL_GUARDED_BY(mutex_);  // Of the part at the same place.
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time began_ ABSL_GUARDED_BY(mutex_);  // The one that runs.
  // Of the one that runs, and of that which follows it; empty: nobody waits, and there is none.
  Done done_ ABSL_GUARDED_BY(mutex_), next_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  std::condition_variable_any ordered_;
  std::jthread thread_;  // Last: it uses the rest.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_RELOADER_H_
