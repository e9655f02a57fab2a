// Signs that the machine was not ours alone or not at full speed, read from the system.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/device/device.h"

namespace gridclock {

// Counts since boot; what the system does not tell is unset, and nothing is claimed from it.
struct HostCounts {
  std::optional<std::uint64_t> busy, steal;  // Ticks of all CPUs: at work; taken by the host.
  std::optional<std::uint64_t> quota_stops;  // Times that the cgroup's quota stopped us.
  std::optional<std::uint64_t> heat_stops;   // Times that a core was slowed for its heat.
  std::optional<double> clock_hz;            // Of CPU 0, where the driver tells.
};

// `root` stands before /proc and /sys, for tests.
HostCounts ReadHostCounts(const std::string& root = "");

// What happened between two readings. `throttled`: heat or quota stopped us. `shared`: the host
// took more than 2 % of the busy time for someone else; other processes of this system do not
// count, because the server and its clients are among them.
Conditions Compare(const HostCounts& before, const HostCounts& after);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_CONDITIONS_H_
