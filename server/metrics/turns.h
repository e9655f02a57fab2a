// Whose turn it is to make a page.
#ifndef GRIDCLOCK_SERVER_METRICS_TURNS_H_
#define GRIDCLOCK_SERVER_METRICS_TURNS_H_

#include <chrono>
#include <condition_variable>
#include <deque>

#include "base/mutex.h"

namespace gridclock {

// One at a time, first come, first served. Behind each turn comes a rest that is `rest` times as
// long as it took, half a second at most, so that readers without end leave the processors to
// calls: of one they have 1 / (1 + rest).
class Turns {
 public:
  explicit Turns(int rest) : rest_(rest) {}

  class [[nodiscard]] Turn {
   public:
    explicit Turn(Turns& turns) : turns_(turns) { turns_.Begin(); }
    ~Turn() { turns_.End(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Turns& turns_;
  };

  int waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  const int rest_;
  mutable Mutex mutex_;
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
  Clock::time_point began_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point rested_ ABSL_GUARDED_BY(mutex_);
  // Each who waits has one of its own, so that nobody is woken whose turn it is not.
  std::deque<std::condition_variable_any*> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_TURNS_H_
