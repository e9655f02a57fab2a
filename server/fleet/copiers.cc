#include "server/fleet/copiers.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <sched.h>

#include "base/cgroup.h"

namespace gridclock {

struct Copiers::Work {
  void CopyPieces() {
    for (;;) {
      const std::size_t at = next.fetch_add(kPiece, std::memory_order_relaxed);
      if (at >= from.size()) return;
      std::memcpy(to.data() + at, from.data() + at, std::min(kPiece, from.size() - at));
    }
  }

  const std::span<std::byte> to;
  const std::span<const std::byte> from;
  std::atomic<std::size_t> next = 0;
  std::atomic<int> helping = 0;  // Becomes more under the lock alone.
};

int Copiers::HelpersHere() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;  // More than 1,024 CPUs.
  const double cpus = std::min<double>(CPU_COUNT(&allowed), CgroupCpus().value_or(CPU_SETSIZE));
  return std::min(kMostHelpers, static_cast<int>(cpus) / 4);
}

Copiers::Copiers(int helpers) {
  for (int i = 0; i < helpers; ++i) {
    helpers_.emplace_back([this](const std::stop_token& stop) { Help(stop); });
  }
}

void Copiers::Copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return;  // memcpy may not have a null pointer, not even for no bytes.
  if (alone() || from.size() < kShared) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  Work work{.to = to, .from = from};
  {
    const MutexLock lock(mutex_);
    open_.push_back(&work);
  }
  begun_.notify_all();
  work.CopyPieces();
  Close(work);
  // The last pieces are under way, which takes less time than to sleep and be woken.
  while (work.helping > 0) std::this_thread::yield();
}

void Copiers::Close(Work& work) {
  const MutexLock lock(mutex_);
  std::erase(open_, &work);
}

Copiers::Work* Copiers::Join(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const auto is_open = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !open_.empty(); };
  if (!begun_.wait(mutex_, stop, is_open)) return nullptr;
  ++open_.front()->helping;
  return open_.front();
}

void Copiers::Help(const std::stop_token& stop) {
  while (Work* work = Join(stop)) {
    work->CopyPieces();
    Close(*work);
    --work->helping;  // From here on it is gone.
  }
}

}  // namespace gridclock
