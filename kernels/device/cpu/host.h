// What the operating system says of this machine, within the limits set on this process.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gridclock {

// A cache of the last level and those CPUs of the affinity mask that share it.
struct LastCache {
  std::uint64_t bytes = 0;
  std::vector<int> cpus = {};
};

struct HostFacts {
  std::string model = {};          // "AMD EPYC 9B14"; "unknown" if it is not told.
  std::vector<int> mask = {};      // The CPUs of the affinity mask, ascending.
  int cpus = 1;                    // So many, less where a cgroup quota allows less.
  std::uint64_t memory_bytes = 0;  // The smaller of RAM and the cgroup's limit.
  std::uint64_t l1_bytes = 0;      // Data caches, per core; 0 if not told.
  std::uint64_t l2_bytes = 0;
  std::uint64_t llc_bytes = 0;  // The last level, as one core sees it: the largest of the caches.
  // Every cache of the last level that the affinity mask spans: a server has one for each socket,
  // or one for each few cores.
  std::vector<LastCache> last_caches = {};
  std::vector<int> untold = {};  // CPUs of the mask whose caches the system does not tell.
};

// The CPUs of this thread's affinity mask, ascending.
std::vector<int> AffinityCpus();

// `root` stands before /proc and /sys, for tests; `mask` for the affinity mask.
HostFacts ReadHostFacts(const std::string& root = "",
                        const std::vector<int>& mask = AffinityCpus());

// All last-level caches together. For CPUs of which nothing is told, 4 MiB each and at least
// 32 MiB are assumed: what a core of a large server has.
std::uint64_t SpannedLlcBytes(const HostFacts& host);

// What one CPU must read so that all of them together leave nothing else in any cache: twice its
// part of its last-level cache, and twice its own second level.
struct FlushShare {
  int cpu = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const FlushShare&, const FlushShare&) = default;
};
std::vector<FlushShare> PlanFlush(const HostFacts& host);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_
