// Signs that the machine was not ours alone or not at full speed, read from the system.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device/device.h"

namespace gridclock {

// Counts since boot; what the system does not tell is unset, and nothing is claimed from it. A tick
// is 10 ms.
struct HostCounts {
  int cpus = 0;  // Of the mask, as far as the system counts them.
  // Ticks of these CPUs: at work; taken by the hypervisor; all that passed, idle ones too.
  std::optional<std::uint64_t> busy = {}, steal = {}, total = {};
  std::optional<std::uint64_t> own = {},
                               server = {};  // Ticks that this process worked; its server.
  // By the file that counts: times that a cgroup's quota stopped us, and that a core or its package
  // was slowed for its heat.
  std::map<std::string, std::uint64_t> stops = {};
};

// Of the CPUs in `mask`, the affinity mask. `server`: the process that this one works for; 0: none.
// `root` stands before /proc and /sys, for tests.
HostCounts ReadHostCounts(const std::vector<int>& mask, int server, const std::string& root = "");

// What happened between two readings. `throttled`: heat or quota stopped us. `shared`: either the
// hypervisor took more than 2 % of the busy time for someone else, or others than we worked on
// these CPUs for more than 5 % of their time, or for more than half of one CPU where 5 % are more.
// What the server does for this measurement is ours, up to 5 % of one CPU; what it does beyond
// that, as for another client's upload, disturbs like anybody's. Ticks are sampled and rounded, so
// less than 5 of them, or less than one for each CPU, tell nothing. `sharing_unknown`: not
// `shared`, and somebody who worked on one CPU all the time could not have been seen, because the
// window is as short as that or the system does not count.
Conditions Compare(const HostCounts& before, const HostCounts& after);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_
