#ifndef GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_
#define GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/worker/link.h"
#include "proto/types/vitals.h"

namespace gridclock {

// Says every second that the process is alive, also while a kernel runs. When the server is gone
// it ends the process at once: a kernel that never returns must not outlive who asked for it.
class Heartbeat {
 public:
  // What to say of the device; none now.
  using Vitals = std::function<std::optional<DeviceVitals>()>;
  // `vitals` may be null; it is called from a thread of its own: a driver that does not answer, for
  // another GPU's sake perhaps, must not make this process look dead.
  Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped, Vitals vitals);
  ~Heartbeat();

 private:
  void Beat();
  void Ask();
  // A second; false once it is to stop.
  bool Pause(std::unique_lock<std::mutex>& lock);

  Link& link_;
  const std::atomic<std::uint64_t>& dropped_;
  const Vitals vitals_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::optional<DeviceVitals> answer_;  // That was not yet told.
  std::thread heart_, asker_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_
