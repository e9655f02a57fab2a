#include "kernels/device/cpu/conditions.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "kernels/device/cpu/host.h"

namespace gridclock {
namespace {

// "cpu  user nice system idle iowait irq softirq steal ..."
void ReadStat(const std::string& text, HostCounts& counts) {
  const std::string line = text.substr(0, text.find('\n'));
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  constexpr std::size_t kUser = 1, kIdle = 4, kIoWait = 5, kSteal = 8;
  if (words.size() <= kSteal || words[0] != "cpu") return;
  std::uint64_t busy = 0, steal = 0;
  for (std::size_t i = kUser; i < kSteal; ++i) {
    std::uint64_t ticks = 0;
    if (!absl::SimpleAtoi(words[i], &ticks)) return;
    if (i != kIdle && i != kIoWait) busy += ticks;
  }
  if (!absl::SimpleAtoi(words[kSteal], &steal)) return;
  counts.busy = busy;
  counts.steal = steal;
}

std::optional<std::uint64_t> Number(const std::string& path) {
  const auto text = ReadText(path);
  std::uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
}

bool Grew(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after) {
  return before && after && *after > *before;
}

}  // namespace

HostCounts ReadHostCounts(const std::string& root) {
  HostCounts counts;
  ReadStat(ReadText(root + "/proc/stat").value_or(""), counts);
  const std::string cgroup = ReadText(root + "/sys/fs/cgroup/cpu.stat").value_or("");
  counts.quota_stops = FindCount(cgroup, "nr_throttled");
  const std::string cpu = root + "/sys/devices/system/cpu/cpu0";
  counts.heat_stops = Number(cpu + "/thermal_throttle/core_throttle_count");
  if (const auto khz = Number(cpu + "/cpufreq/scaling_cur_freq")) {
    counts.clock_hz = 1e3 * static_cast<double>(*khz);
  }
  return counts;
}

Conditions Compare(const HostCounts& before, const HostCounts& after) {
  Conditions conditions;
  conditions.clock_hz = after.clock_hz.value_or(0);
  conditions.throttled =
      Grew(before.heat_stops, after.heat_stops) || Grew(before.quota_stops, after.quota_stops);
  if (Grew(before.steal, after.steal)) {
    const std::uint64_t stolen = *after.steal - *before.steal;
    const std::uint64_t busy = *after.busy - *before.busy + stolen;
    // One tick is the step of the count: too little to tell.
    conditions.shared = stolen > 1 && stolen * 50 > busy;
  }
  return conditions;
}

}  // namespace gridclock
