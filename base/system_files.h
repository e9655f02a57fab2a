// What the system says in files of /proc and /sys.
#ifndef GRIDCLOCK_BASE_SYSTEM_FILES_H_
#define GRIDCLOCK_BASE_SYSTEM_FILES_H_

#include <cstdint>
#include <optional>
#include <string>

namespace gridclock {

// The text of a file, or nothing if it cannot be read.
std::optional<std::string> ReadText(const std::string& path);
// The number behind `key` in lines of "key value", as in cpu.stat and meminfo.
std::optional<std::uint64_t> FindCount(const std::string& text, const std::string& key);

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_SYSTEM_FILES_H_
