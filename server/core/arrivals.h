// Threads that tell of inputs that arrive. Who tells of those for a guest copies them too, and a
// thread that receives has the next bytes to take.
#ifndef GRIDCLOCK_SERVER_CORE_ARRIVALS_H_
#define GRIDCLOCK_SERVER_CORE_ARRIVALS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/core/scheduler.h"

namespace gridclock {

// Thread-safe.
class Arrivals {
 public:
  using Told = std::function<void(JobId id, const InputArrival& arrival)>;

  // `told`, as Scheduler::Arrived, is called on so many threads, and no more once this is gone.
  Arrivals(int threads, Told told);
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // Never waits. Of an input that was not told of yet the newest is told, in the place of the
  // first. Two threads may tell of one input at the same time, in any order.
  void Tell(JobId id, const InputArrival& arrival) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct News {
    JobId id = 0;
    InputArrival arrival;
  };

  void Run(const std::stop_token& stop);
  // nullopt: it is to end.
  std::optional<News> Next(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);

  const Told told_;
  Mutex mutex_;
  std::deque<News> news_ ABSL_GUARDED_BY(mutex_);  // At most one of each input.
  std::condition_variable_any came_;
  std::vector<std::jthread> threads_;  // Last: they use the rest.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_ARRIVALS_H_
