#include "kernels/device/cpu/host.h"

#include <algorithm>
#include <map>

#include <sched.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/cgroup.h"
#include "base/system_files.h"

namespace gridclock {
namespace {

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadText(path);
  std::uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
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

// The data caches of one CPU; 0 where the system does not tell.
struct CpuCaches {
  std::uint64_t l1 = 0, l2 = 0, last = 0;
  std::string last_sharers;  // "0-7,64-71": the same text for all CPUs of one cache.
};

CpuCaches ReadCaches(const std::string& root, int cpu) {
  CpuCaches caches;
  // Virtual machines may show two levels and hide the third, which is there all the same.
  std::uint64_t last_level = 3;
  for (int index = 0;; ++index) {
    const std::string folder =
        absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/cache/index", index);
    const auto level = ReadNumber(folder + "/level");
    if (!level) return caches;
    const auto type = ReadText(folder + "/type");
    if (type && absl::StrContains(*type, "Instruction")) continue;
    const std::uint64_t size = CacheSize(ReadText(folder + "/size").value_or(""));
    if (*level == 1) caches.l1 = size;
    if (*level == 2) caches.l2 = size;
    if (size == 0 || *level < last_level) continue;
    last_level = *level;
    caches.last = size;
    // Without a list it counts as the CPU's own: rather too much is flushed than too little.
    caches.last_sharers =
        ReadText(folder + "/shared_cpu_list").value_or(absl::StrCat("only ", cpu));
  }
}

void AddCaches(const std::string& root, const std::vector<int>& mask, HostFacts& facts) {
  std::map<std::string, LastCache> by_sharers;
  for (const int cpu : mask) {
    const CpuCaches caches = ReadCaches(root, cpu);
    facts.l1_bytes = std::max(facts.l1_bytes, caches.l1);
    facts.l2_bytes = std::max(facts.l2_bytes, caches.l2);
    facts.llc_bytes = std::max(facts.llc_bytes, caches.last);
    if (caches.last == 0) {
      facts.untold.push_back(cpu);
      continue;
    }
    LastCache& cache = by_sharers[caches.last_sharers];
    cache.bytes = std::max(cache.bytes, caches.last);
    cache.cpus.push_back(cpu);
  }
  for (auto& [sharers, cache] : by_sharers) facts.last_caches.push_back(std::move(cache));
}

// Those that are told, and what is assumed of the rest.
std::vector<LastCache> AllLastCaches(const HostFacts& host) {
  constexpr std::uint64_t kPerCpu = std::uint64_t{4} << 20, kLeast = std::uint64_t{32} << 20;
  std::vector<LastCache> caches = host.last_caches;
  if (!host.untold.empty()) {
    caches.push_back({std::max(kLeast, kPerCpu * host.untold.size()), host.untold});
  }
  return caches;
}

}  // namespace

std::vector<int> AffinityCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::uint64_t SpannedLlcBytes(const HostFacts& host) {
  std::uint64_t bytes = 0;
  for (const LastCache& cache : AllLastCaches(host)) bytes += cache.bytes;
  return bytes;
}

std::vector<FlushShare> PlanFlush(const HostFacts& host) {
  constexpr std::uint64_t kPage = 4096;
  std::vector<FlushShare> plan;
  for (const LastCache& cache : AllLastCaches(host)) {
    const std::uint64_t part = 2 * std::max(cache.bytes / cache.cpus.size(), host.l2_bytes);
    for (const int cpu : cache.cpus) plan.push_back({cpu, (part / kPage + 1) * kPage});
  }
  return plan;
}

HostFacts ReadHostFacts(const std::string& root, const std::vector<int>& mask) {
  HostFacts facts;
  facts.model = ModelName(root);
  facts.mask = mask;
  facts.cpus = static_cast<int>(mask.size());
  if (const auto quota = CgroupCpus(root); quota && *quota < facts.cpus) {
    facts.cpus = std::max(1, static_cast<int>(*quota));
  }
  const auto meminfo = ReadText(root + "/proc/meminfo");
  const std::uint64_t ram = 1024 * (meminfo ? FindCount(*meminfo, "MemTotal").value_or(0) : 0);
  const std::uint64_t limit = CgroupMemoryLimit(root).value_or(ram);
  facts.memory_bytes = ram == 0 ? limit : std::min(ram, limit);
  AddCaches(root, mask, facts);
  return facts;
}

}  // namespace gridclock
