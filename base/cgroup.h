// The limits of the control groups that this process is in. A group has its own and those of all
// above it; only a container sees its own at the root of the mount. Versions 1 and 2. `root` stands
// before /proc and /sys, for tests.
#ifndef GRIDCLOCK_BASE_CGROUP_H_
#define GRIDCLOCK_BASE_CGROUP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gridclock {

// The least of the limits on memory.
std::optional<std::uint64_t> CgroupMemoryLimit(const std::string& root = "");

// CPUs that the smallest quota pays for, as 1.5.
std::optional<double> CgroupCpus(const std::string& root = "");

// How often each of the groups was stopped by its quota, by the group's folder. They MUST be
// compared one by one: their sum would say nothing where one of them is replaced.
std::map<std::string, std::uint64_t> CgroupStops(const std::string& root = "");

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_CGROUP_H_
