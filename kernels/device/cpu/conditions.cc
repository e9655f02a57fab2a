#include "kernels/device/cpu/conditions.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/cgroup.h"
#include "base/system_files.h"

namespace gridclock {
namespace {

// One line, "cpu3 user nice system idle iowait irq softirq steal ...", is added to the counts.
void AddCpu(const std::vector<std::string>& words, HostCounts& counts) {
  constexpr std::size_t kUser = 1, kIdle = 4, kIoWait = 5, kSteal = 8;
  if (words.size() <= kSteal) return;
  std::uint64_t busy = 0, steal = 0, total = 0;
  for (std::size_t i = kUser; i <= kSteal; ++i) {
    std::uint64_t ticks = 0;
    if (!absl::SimpleAtoi(words[i], &ticks)) return;
    total += ticks;
    if (i == kSteal) steal = ticks;
    if (i != kIdle && i != kIoWait && i != kSteal) busy += ticks;
  }
  ++counts.cpus;
  counts.busy = counts.busy.value_or(0) + busy;
  counts.steal = counts.steal.value_or(0) + steal;
  counts.total = counts.total.value_or(0) + total;
}

void ReadStat(const std::string& text, const std::vector<int>& mask, HostCounts& counts) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.empty()) continue;
    absl::string_view name = words[0];
    int cpu = 0;
    // "cpu" alone is the sum of all.
    if (!absl::ConsumePrefix(&name, "cpu") || !absl::SimpleAtoi(name, &cpu)) continue;
    if (std::binary_search(mask.begin(), mask.end(), cpu)) AddCpu(words, counts);
  }
}

// "pid (name) state ppid ...": fields 14 and 15 are the ticks in user and in system mode. The name
// may hold anything, so they are counted from its end.
std::optional<std::uint64_t> TicksOf(const std::string& path) {
  const std::string text = ReadText(path).value_or("");
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  const std::vector<std::string> words =
      absl::StrSplit(text.substr(end_of_name + 1), ' ', absl::SkipEmpty());
  constexpr std::size_t kUser = 11, kSystem = 12;
  std::uint64_t user = 0, system = 0;
  if (words.size() <= kSystem || !absl::SimpleAtoi(words[kUser], &user) ||
      !absl::SimpleAtoi(words[kSystem], &system)) {
    return std::nullopt;
  }
  return user + system;
}

std::optional<std::uint64_t> Number(const std::string& path) {
  const auto text = ReadText(path);
  std::uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
}

std::uint64_t Growth(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after) {
  return before && after && *after > *before ? *after - *before : 0;
}

bool HypervisorTook(const HostCounts& before, const HostCounts& after) {
  const std::uint64_t stolen = Growth(before.steal, after.steal);
  const std::uint64_t busy = Growth(before.busy, after.busy) + stolen;
  // One tick is the step of the count: too little to tell.
  return stolen > 1 && stolen * 50 > busy;
}

// Whether others than we worked on these CPUs; nothing where that cannot be told.
std::optional<bool> OthersWorked(const HostCounts& before, const HostCounts& after) {
  if (!before.own || !after.own || after.cpus == 0 || before.cpus != after.cpus) {
    return std::nullopt;
  }
  constexpr double kShare = 0.05, kOfOneCpu = 0.5, kHandful = 5, kServed = 0.05;
  const auto cpus = static_cast<double>(after.cpus);
  const double window = static_cast<double>(Growth(before.total, after.total)) / cpus;
  const double served =
      std::min(static_cast<double>(Growth(before.server, after.server)), kServed * window);
  const double others = static_cast<double>(Growth(before.busy, after.busy)) -
                        static_cast<double>(Growth(before.own, after.own)) - served;
  const double least = std::max(kHandful, cpus);
  if (others >= least && others > window * std::min(kShare * cpus, kOfOneCpu)) return true;
  if (window < least) return std::nullopt;
  return false;
}

// A counter that is new, as of a CPU that came, says nothing of the time between.
bool AnyGrew(const std::map<std::string, std::uint64_t>& before,
             const std::map<std::string, std::uint64_t>& after) {
  return std::any_of(after.begin(), after.end(), [&](const auto& counter) {
    const auto found = before.find(counter.first);
    return found != before.end() && counter.second > found->second;
  });
}

void ReadHeat(const std::string& root, const std::vector<int>& mask, HostCounts& counts) {
  for (const int cpu : mask) {
    const std::string folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/thermal_throttle/");
    const auto core = Number(folder + "core_throttle_count");
    if (!core) return;  // All CPUs of a machine have it, or none.
    counts.stops[folder + "core"] = *core;
    if (const auto package = Number(folder + "package_throttle_count")) {
      counts.stops[folder + "package"] = *package;
    }
  }
}

}  // namespace

HostCounts ReadHostCounts(const std::vector<int>& mask, int server, const std::string& root) {
  HostCounts counts;
  ReadStat(ReadText(root + "/proc/stat").value_or(""), mask, counts);
  counts.own = TicksOf(root + "/proc/self/stat");
  if (server != 0) counts.server = TicksOf(absl::StrCat(root, "/proc/", server, "/stat"));
  counts.stops = CgroupStops(root);
  ReadHeat(root, mask, counts);
  return counts;
}

Conditions Compare(const HostCounts& before, const HostCounts& after) {
  Conditions conditions;
  conditions.throttled = AnyGrew(before.stops, after.stops);
  const std::optional<bool> others = OthersWorked(before, after);
  conditions.shared = HypervisorTook(before, after) || others.value_or(false);
  conditions.sharing_unknown = !conditions.shared && !others;
  return conditions;
}

}  // namespace gridclock
