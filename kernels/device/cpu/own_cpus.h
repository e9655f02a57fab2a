// Gives each thread of an arena a CPU of its own, where they are as many as the CPUs of this
// process: fewer have room, and it is not ours to say where; more must share. Left to itself the
// system often wakes a sleeping thread on the CPU of the one that woke it, where it waits for
// milliseconds beside an idle CPU.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_OWN_CPUS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_OWN_CPUS_H_

#include <atomic>
#include <cstddef>
#include <vector>

#include <sched.h>

namespace gridclock {

class OwnCpus {
 public:
  explicit OwnCpus(int threads);

  // By the calling thread before a region: it stays where it is, the others take the CPUs after it.
  void Place();
  // By each thread within it. A thread of the arena keeps its CPU, so that it wakes there.
  void Enter(int slot) const;
  // By the calling thread after it, which may go anywhere again.
  void Leave() const;

 private:
  void MoveTo(int cpu) const;

  cpu_set_t allowed_;
  std::vector<int> cpus_;
  bool one_each_ = false;
  std::atomic<std::size_t> first_{0};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_OWN_CPUS_H_
