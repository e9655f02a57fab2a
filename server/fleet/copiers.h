// Threads that help to copy: one alone moves about half of what memory can.
#ifndef GRIDCLOCK_SERVER_FLEET_COPIERS_H_
#define GRIDCLOCK_SERVER_FLEET_COPIERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace gridclock {

// Thread-safe. One for all guests of a server.
class Copiers {
 public:
  // What one thread takes at a time; a copy of fewer than kShared bytes ends before another thread
  // is awake.
  static constexpr std::size_t kPiece = std::size_t{64} << 10, kShared = std::size_t{1} << 20;
  static constexpr int kMostHelpers = 3;

  // One for every four CPUs that this process may use: the others have guests and calls to serve.
  static int HelpersHere();

  explicit Copiers(int helpers);
  // Nobody helps: there are few CPUs.
  bool alone() const { return helpers_.empty(); }

  // Returns when all is copied. The calling thread takes part, and does it alone where the others
  // are busy. The two MUST be of one size and not overlap.
  void Copy(std::span<std::byte> to, std::span<const std::byte> from) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Work;
  void Help(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  // Null: it is to end.
  Work* Join(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(Work& work) ABSL_LOCKS_EXCLUDED(mutex_);

  Mutex mutex_;
  std::condition_variable_any begun_;
  std::deque<Work*> open_ ABSL_GUARDED_BY(mutex_);  // There may be pieces left of them.
  std::vector<std::jthread> helpers_;               // Last: they use the rest.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_COPIERS_H_
