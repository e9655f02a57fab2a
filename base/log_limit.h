// How many lines of one kind a log takes: whoever makes a server say the same over and over fills
// no disk with it.
#ifndef GRIDCLOCK_BASE_LOG_LIMIT_H_
#define GRIDCLOCK_BASE_LOG_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

// Thread-safe. Each event may come kBurst times at once, and kPerSecond times a second in the long
// run.
class LogLimit {
 public:
  static constexpr double kBurst = 50;
  static constexpr double kPerSecond = 5;
  static constexpr absl::Duration kQuiet = absl::Seconds(5);
  // Events are fixed words; should they not be, the first so many are limited.
  static constexpr std::size_t kEvents = 256;

  // How many lines of this event were left out since the last that was taken; nullopt: this one is
  // left out too.
  std::optional<std::uint64_t> Take(absl::string_view event, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same of each event of which there was no line for kQuiet; their count begins anew.
  std::map<std::string, std::uint64_t> TakeQuiet(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Bucket {
    double lines = kBurst;
    absl::Time filled;
    std::uint64_t left_out = 0;
  };
  Mutex mutex_;
  std::map<std::string, Bucket, std::less<>> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_LOG_LIMIT_H_
