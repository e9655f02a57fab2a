#include "kernels/device/cuda/gpu_conditions.h"

#include <algorithm>
#include <utility>

#include <dirent.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/system_files.h"

namespace gridclock {
namespace {

constexpr std::pair<std::uint64_t, const char*> kReasons[] = {
    {kClockIdle, "gpu_idle"},
    {kClockApplications, "applications_clocks"},
    {kClockPowerCap, "sw_power_cap"},
    {kClockHwSlowdown, "hw_slowdown"},
    {kClockSyncBoost, "sync_boost"},
    {kClockSwThermal, "sw_thermal_slowdown"},
    {kClockHwThermal, "hw_thermal_slowdown"},
    {kClockPowerBrake, "hw_power_brake"},
    {kClockDisplay, "display_clock"},
};

constexpr std::uint64_t kHeldDown = kClockPowerCap | kClockHwSlowdown | kClockSyncBoost |
                                    kClockSwThermal | kClockHwThermal | kClockPowerBrake;

bool HeldDown(const NvmlReading& reading) {
  return (reading.clock_reasons.value_or(0) & kHeldDown) != 0;
}

bool GrewMuch(std::optional<std::uint64_t> before, std::optional<std::uint64_t> after,
              std::uint64_t elapsed_ns) {
  return before && after && *after > *before && *after - *before > elapsed_ns / 100;
}

enum class Sharing : std::uint8_t { kAlone, kShared, kUnknown };

Sharing SharingOf(const NvmlReading& reading, std::span<const std::int64_t> own) {
  if (!reading.processes || own.empty()) return Sharing::kUnknown;
  const auto& there = *reading.processes;
  const auto is_own = [&](std::int64_t pid) {
    return std::find(own.begin(), own.end(), pid) != own.end();
  };
  if (std::find(there.begin(), there.end(), own.front()) == there.end()) {
    return there.size() > own.size() ? Sharing::kShared : Sharing::kUnknown;
  }
  if (!std::all_of(there.begin(), there.end(), is_own)) return Sharing::kShared;
  return reading.part_of_gpu ? Sharing::kUnknown : Sharing::kAlone;
}

struct Origin {
  std::string name;  // Of its program, cut off behind 15 characters; "": the process is gone.
  std::int64_t parent = 0;
  friend bool operator==(const Origin&, const Origin&) = default;
};

// By /proc/<pid>/stat, "pid (name) state ppid ...".
Origin OriginOf(const std::string& root, std::int64_t pid) {
  const std::string text = ReadText(absl::StrCat(root, "/proc/", pid, "/stat")).value_or("");
  const auto name = text.find('('), end_of_name = text.rfind(')');
  if (name == std::string::npos || end_of_name == std::string::npos) return {};
  const std::vector<std::string> words =
      absl::StrSplit(text.substr(end_of_name + 1), ' ', absl::SkipEmpty());
  std::int64_t parent = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &parent)) return {};
  return {.name = text.substr(name + 1, end_of_name - name - 1), .parent = parent};
}

}  // namespace

std::vector<std::string> ClockReasonNames(std::uint64_t bits) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons) {
    if ((bits & bit) != 0) names.emplace_back(name);
    bits &= ~bit;
  }
  if (bits != 0) names.push_back(absl::StrCat("other_", absl::Hex(bits)));
  return names;
}

DeviceState StateOf(const NvmlReading& reading) {
  return {.sm_clock_hz = reading.sm_clock_hz.value_or(0),
          .memory_clock_hz = reading.memory_clock_hz.value_or(0),
          .power_watts = reading.power_watts.value_or(0),
          .temperature_celsius = reading.temperature_celsius.value_or(0),
          .memory_used_bytes = reading.memory_used_bytes.value_or(0),
          .memory_free_bytes = reading.memory_free_bytes.value_or(0),
          .clock_reasons = ClockReasonNames(reading.clock_reasons.value_or(0))};
}

Conditions CompareReadings(const NvmlReading& before, const NvmlReading& after,
                           std::uint64_t elapsed_ns, std::span<const std::int64_t> own) {
  const Sharing first = SharingOf(before, own), last = SharingOf(after, own);
  Conditions conditions;
  conditions.throttled =
      HeldDown(before) || HeldDown(after) ||
      GrewMuch(before.power_violation_ns, after.power_violation_ns, elapsed_ns) ||
      GrewMuch(before.thermal_violation_ns, after.thermal_violation_ns, elapsed_ns);
  conditions.shared = first == Sharing::kShared || last == Sharing::kShared;
  conditions.sharing_unknown =
      !conditions.shared && (first == Sharing::kUnknown || last == Sharing::kUnknown);
  conditions.state = StateOf(after);
  return conditions;
}

std::string CalibrationDoubt(const Conditions& meanwhile, bool clock_steady) {
  std::vector<absl::string_view> why;
  if (meanwhile.shared) why.push_back("beside another process on the device");
  if (meanwhile.throttled) why.push_back("while its clock was held down");
  if (!clock_steady) why.push_back("on a clock that moved");
  if (why.empty()) return "";
  return absl::StrCat("its floor and offsets were measured ", absl::StrJoin(why, ", "),
                      " and may be off: a new worker measures them anew (gridclock admin restart)");
}

std::vector<std::int64_t> OwnPids(const std::string& root) {
  const std::int64_t self = getpid();
  const Origin worker = OriginOf(root, self);
  std::vector<std::int64_t> own = {self};
  DIR* folder = opendir((root + "/proc").c_str());
  if (folder == nullptr) return own;
  while (const dirent* entry = readdir(folder)) {
    std::int64_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid) || pid == self) continue;
    const Origin origin = OriginOf(root, pid);
    if (!origin.name.empty() && origin == worker) own.push_back(pid);
  }
  closedir(folder);
  return own;
}

}  // namespace gridclock
