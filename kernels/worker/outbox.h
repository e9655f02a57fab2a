// Frames on their way out, gathered so that one system call sends many.
#ifndef GRIDCLOCK_KERNELS_WORKER_OUTBOX_H_
#define GRIDCLOCK_KERNELS_WORKER_OUTBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gridclock/worker/v1/worker.pb.h"
#include "kernels/worker/link.h"

namespace gridclock {

class Outbox {
 public:
  explicit Outbox(Link& link) : link_(link) {}
  // INTERNAL if the message does not fit a frame; nothing is added then.
  absl::Status Add(const worker::v1::ToServer& message);
  absl::Status Flush();
  std::size_t size() const { return used_; }

 private:
  Link& link_;
  std::vector<std::string> frames_;  // Used again; `used_` of them wait.
  std::size_t used_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_OUTBOX_H_
