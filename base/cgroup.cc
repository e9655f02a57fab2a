#include "base/cgroup.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/system_files.h"

namespace gridclock {
namespace {

constexpr char kMount[] = "/sys/fs/cgroup";

// The folders of `path`, "/system.slice/gridclock.service", below `mount`, up to that itself. Where
// the mount begins further down, as a container's may, the folders of the path are not there, and
// its own is the mount's root.
void AddFolders(const std::string& mount, std::string path, std::vector<std::string>& folders) {
  // "/../other": a group beside the one that is mounted, which shows nothing of it.
  if (absl::StrContains(path, "/..") || !absl::StartsWith(path, "/")) path.clear();
  while (path.size() > 1) {
    folders.push_back(mount + path);
    path.erase(path.rfind('/'));
  }
  folders.push_back(mount);
}

// Where a group of this process may have files of `controller`, "memory". A line is
// "4:cpu,cpuacct:/path", of version 2 "0::/path".
std::vector<std::string> Folders(absl::string_view controller, const std::string& root) {
  const std::string mount = root + kMount;
  std::vector<std::string> folders;
  const std::string text = ReadText(root + "/proc/self/cgroup").value_or("0::/\n");
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      AddFolders(mount, parts[2], folders);
    } else if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) {
      AddFolders(absl::StrCat(mount, "/", controller), parts[2], folders);
    }
  }
  return folders;
}

std::optional<std::uint64_t> ReadCount(const std::string& path) {
  const auto text = ReadText(path);
  std::uint64_t value = 0;
  if (!text || !absl::SimpleAtoi(*text, &value)) return std::nullopt;
  return value;
}

// "150000 100000", or "max 100000" for no quota.
std::optional<double> Cpus(absl::string_view text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0, period = 0;
  // "-1" is how version 1 says that there is none.
  if (words.size() < 2 || !absl::SimpleAtod(words[0], &quota) ||
      !absl::SimpleAtod(words[1], &period) || quota <= 0 || period <= 0) {
    return std::nullopt;
  }
  return quota / period;
}

template <typename T>
void TakeLess(std::optional<T>& least, std::optional<T> value) {
  if (value && (!least || *value < *least)) least = value;
}

}  // namespace

std::optional<std::uint64_t> CgroupMemoryLimit(const std::string& root) {
  std::optional<std::uint64_t> least;
  for (const std::string& folder : Folders("memory", root)) {
    TakeLess(least, ReadCount(folder + "/memory.max"));
    TakeLess(least, ReadCount(folder + "/memory.limit_in_bytes"));
  }
  return least;
}

std::optional<double> CgroupCpus(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : Folders("cpu", root)) {
    TakeLess(least, Cpus(ReadText(folder + "/cpu.max").value_or("")));
    TakeLess(least, Cpus(absl::StrCat(ReadText(folder + "/cpu.cfs_quota_us").value_or(""), " ",
                                      ReadText(folder + "/cpu.cfs_period_us").value_or(""))));
  }
  return least;
}

std::map<std::string, std::uint64_t> CgroupStops(const std::string& root) {
  std::map<std::string, std::uint64_t> stops;
  for (const std::string& folder : Folders("cpu", root)) {
    const auto text = ReadText(folder + "/cpu.stat");
    if (!text) continue;
    if (const auto count = FindCount(*text, "nr_throttled")) stops[folder] = *count;
  }
  return stops;
}

}  // namespace gridclock
