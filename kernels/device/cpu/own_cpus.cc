#include "kernels/device/cpu/own_cpus.h"

#include <algorithm>

namespace gridclock {
namespace {

// A new thread has the CPUs of the one that made it.
constexpr int kUnknown = -2, kAnywhere = -1;
thread_local int own_cpu = kUnknown;

}  // namespace

OwnCpus::OwnCpus(int threads) {
  CPU_ZERO(&allowed_);
  if (sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;  // More than 1,024 CPUs.
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed_)) cpus_.push_back(cpu);
  }
  one_each_ = cpus_.size() == static_cast<std::size_t>(threads);
}

void OwnCpus::Place() {
  const auto here = std::find(cpus_.begin(), cpus_.end(), sched_getcpu());
  first_ = here == cpus_.end() ? 0 : static_cast<std::size_t>(here - cpus_.begin());
}

void OwnCpus::Enter(int slot) const {
  if (cpus_.empty()) return;
  MoveTo(one_each_ ? cpus_[(first_ + static_cast<std::size_t>(slot)) % cpus_.size()] : kAnywhere);
}

void OwnCpus::Leave() const {
  if (!cpus_.empty()) MoveTo(kAnywhere);
}

// A system that refuses leaves the thread where it was, which is slower and as right.
void OwnCpus::MoveTo(int cpu) const {
  if (cpu == own_cpu) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  if (cpu != kAnywhere) CPU_SET(cpu, &one);
  const cpu_set_t& wanted = cpu == kAnywhere ? allowed_ : one;
  if (sched_setaffinity(0, sizeof wanted, &wanted) == 0) own_cpu = cpu;
}

}  // namespace gridclock
