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
  // `vitals` may be null; it is called from the heart's own thread.
  Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped, Vitals vitals);
  ~Heartbeat();

 private:
  void Beat();

  Link& link_;
  const std::atomic<std::uint64_t>& dropped_;
  const Vitals vitals_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_
