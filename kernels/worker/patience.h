// Whether to look for the next order for a moment before sleeping. Waking a sleeping process costs
// several times what a small order does, and looking costs a CPU: it is done for as long as orders
// keep coming in time.
#ifndef GRIDCLOCK_KERNELS_WORKER_PATIENCE_H_
#define GRIDCLOCK_KERNELS_WORKER_PATIENCE_H_

#include <algorithm>

namespace gridclock {

class Patience {
 public:
  // With a single CPU whoever should bring the order would have to wait for who looks.
  explicit Patience(int cpus) : cpus_(cpus) {}

  // Asked before each wait.
  bool MayLook() {
    if (cpus_ < 2) return false;
    return credit_ > 0 || ++refused_ % kTryEvery == 0;
  }
  void Found() { credit_ = std::min(credit_ + 1, kMostCredit); }
  void FoundNothing() { credit_ = std::max(credit_ - kCost, 0); }

 private:
  static constexpr int kMostCredit = 16;
  static constexpr int kCost = 4;
  static constexpr int kTryEvery = 64;
  const int cpus_;
  int credit_ = 4;
  int refused_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_PATIENCE_H_
