#include "kernels/device/cpu/host.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include <sched.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadText(path);
  std::uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
}

// Containers see their own cgroup at the root of the mount. Version 1 keeps it in folders.
std::optional<std::uint64_t> MemoryLimit(const std::string& root) {
  const std::string base = root + "/sys/fs/cgroup";
  if (const auto v2 = ReadNumber(base + "/memory.max")) return v2;
  return ReadNumber(base + "/memory/memory.limit_in_bytes");
}

// Whole CPUs that the quota pays for, at least one.
std::optional<int> QuotaCpus(const std::string& root) {
  const auto text = ReadText(root + "/sys/fs/cgroup/cpu.max");
  if (!text) return std::nullopt;
  const std::vector<std::string> words = absl::StrSplit(*text, absl::ByAnyChar(" \n"));
  std::uint64_t quota = 0, period = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[0], &quota) ||
      !absl::SimpleAtoi(words[1], &period) || period == 0) {
    return std::nullopt;  // "max 100000": no quota.
  }
  return std::max(1, static_cast<int>(quota / period));
}

int AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::string ModelName(const std::string& root) {
  const auto text = ReadText(root + "/proc/cpuinfo");
  if (!text) return "unknown";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::ConsumePrefix(&line, "model name")) continue;
    const auto colon = line.find(": ");
    if (colon != absl::string_view::npos) return std::string(line.substr(colon + 2));
  }
  return "unknown";
}

// "1024K" as the kernel writes sizes of caches.
std::uint64_t CacheSize(std::string text) {
  absl::StripAsciiWhitespace(&text);
  absl::string_view digits = text;
  const int shift = absl::ConsumeSuffix(&digits, "K")   ? 10
                    : absl::ConsumeSuffix(&digits, "M") ? 20
                                                        : 0;
  std::uint64_t value = 0;
  return absl::SimpleAtoi(digits, &value) ? value << shift : 0;
}

void ReadCaches(const std::string& root, HostFacts& facts) {
  for (int index = 0;; ++index) {
    const std::string folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu0/cache/index", index);
    const auto level = ReadNumber(folder + "/level");
    if (!level) return;
    const auto type = ReadText(folder + "/type");
    if (type && absl::StrContains(*type, "Instruction")) continue;
    const std::uint64_t size = CacheSize(ReadText(folder + "/size").value_or(""));
    if (*level == 1) facts.l1_bytes = size;
    if (*level == 2) facts.l2_bytes = size;
    facts.llc_bytes = std::max(facts.llc_bytes, size);
  }
}

}  // namespace

std::optional<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> FindCount(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    if (line.empty() || (line[0] != ' ' && line[0] != ':')) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" :\t"), absl::SkipEmpty());
    std::uint64_t value = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &value)) return value;
  }
  return std::nullopt;
}

HostFacts ReadHostFacts(const std::string& root) {
  HostFacts facts;
  facts.model = ModelName(root);
  facts.cpus = std::min(AffinityCpus(), QuotaCpus(root).value_or(1 << 20));
  const auto meminfo = ReadText(root + "/proc/meminfo");
  const std::uint64_t ram = 1024 * (meminfo ? FindCount(*meminfo, "MemTotal").value_or(0) : 0);
  const std::uint64_t limit = MemoryLimit(root).value_or(ram);
  facts.memory_bytes = ram == 0 ? limit : std::min(ram, limit);
  ReadCaches(root, facts);
  return facts;
}

}  // namespace gridclock
