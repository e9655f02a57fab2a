#ifndef GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_
#define GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "kernels/worker/link.h"

namespace gridclock {

// Says every second that the process is alive, also while a kernel runs. When the server is gone
// it ends the process at once: a kernel that never returns must not outlive who asked for it.
class Heartbeat {
 public:
  Heartbeat(Link& link, const std::atomic<std::uint64_t>& dropped);
  ~Heartbeat();

 private:
  void Beat();

  Link& link_;
  const std::atomic<std::uint64_t>& dropped_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_HEARTBEAT_H_
