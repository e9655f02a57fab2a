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

#include "tbb/task_arena.h"
#include "tbb/task_scheduler_observer.h"

namespace gridclock {

class OwnCpus final : public tbb::task_scheduler_observer {
 public:
  OwnCpus(tbb::task_arena& arena, int threads);
  ~OwnCpus() override;

  // Before the calling thread enters the arena: it stays where it is, the others take the CPUs
  // after it.
  void Place();

  void on_scheduler_entry(bool is_worker) override;
  // A thread of the arena keeps its CPU, so that it wakes there; a caller may go anywhere again.
  void on_scheduler_exit(bool is_worker) override;

 private:
  void MoveTo(int cpu) const;

  cpu_set_t allowed_;
  bool one_each_ = false;
  std::vector<int> cpus_;
  std::atomic<std::size_t> first_{0};
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_OWN_CPUS_H_
