// What the operating system says of this machine, within the limits set on this process.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_

#include <cstdint>
#include <optional>
#include <string>

namespace gridclock {

struct HostFacts {
  std::string model = {};          // "AMD EPYC 9B14"; "unknown" if it is not told.
  int cpus = 1;                    // Of the affinity mask, less where a cgroup quota allows less.
  std::uint64_t memory_bytes = 0;  // The smaller of RAM and the cgroup's limit.
  std::uint64_t l1_bytes = 0;      // Data caches, per core; 0 if not told.
  std::uint64_t l2_bytes = 0;
  std::uint64_t llc_bytes = 0;  // The last level, as one core sees it.
};

// `root` stands before /proc and /sys, for tests.
HostFacts ReadHostFacts(const std::string& root = "");

// The text of a file, or nothing if it cannot be read.
std::optional<std::string> ReadText(const std::string& path);
// The number behind `key` in lines of "key value", as in cpu.stat and meminfo.
std::optional<std::uint64_t> FindCount(const std::string& text, const std::string& key);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_HOST_H_
