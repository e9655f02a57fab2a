#include "kernels/sandbox/landlock.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace gridclock {
namespace {

// Debian 12's header ends with the first version; these are the fields up to version 6.
struct RulesetAttributes {
  std::uint64_t files = 0, network = 0, scoped = 0;
};
constexpr std::size_t kRulesetBytes[] = {8, 8, 8, 16, 16, 24};     // By version, from 1.
constexpr std::uint64_t kFileRights[] = {13, 14, 15, 15, 16, 16};  // Their number.
constexpr int kKnownVersions = 6;
constexpr std::uint64_t kAllNetwork = 3;  // TCP: bind and connect.
constexpr std::uint64_t kAllScopes = 3;   // Abstract sockets and signals.
// The second since version 5: control by ioctl.
constexpr std::uint64_t kWriteDevice = LANDLOCK_ACCESS_FS_WRITE_FILE | std::uint64_t{1} << 15;

absl::Status AddRule(int ruleset, const std::string& path, std::uint64_t rights) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return ErrnoToStatus(errno, path);
  struct stat facts {};
  if (fstat(fd.get(), &facts) != 0) return ErrnoToStatus(errno, path);
  if (!S_ISDIR(facts.st_mode)) rights &= ~std::uint64_t{LANDLOCK_ACCESS_FS_READ_DIR};
  landlock_path_beneath_attr rule{};
  rule.allowed_access = rights;
  rule.parent_fd = fd.get();
  if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) {
    return absl::OkStatus();
  }
  return ErrnoToStatus(errno, absl::StrCat("landlock rule for ", path));
}

}  // namespace

int LandlockVersion() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

absl::Status RestrictFiles(const FileRules& rules, int version) {
  const int known = std::min(version, kKnownVersions);
  const RulesetAttributes attributes{.files = (std::uint64_t{1} << kFileRights[known - 1]) - 1,
                                     .network = known >= 4 ? kAllNetwork : 0,
                                     .scoped = known >= 6 ? kAllScopes : 0};
  const UniqueFd ruleset(static_cast<int>(
      syscall(SYS_landlock_create_ruleset, &attributes, kRulesetBytes[known - 1], 0)));
  if (!ruleset) return ErrnoToStatus(errno, "landlock ruleset");
  constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  for (const std::string& path : rules.readable) {
    GC_RETURN_IF_ERROR(AddRule(ruleset.get(), path, kRead));
  }
  for (const std::string& path : rules.executable) {
    GC_RETURN_IF_ERROR(AddRule(ruleset.get(), path, kRead | LANDLOCK_ACCESS_FS_EXECUTE));
  }
  for (const std::string& path : rules.devices) {
    GC_RETURN_IF_ERROR(AddRule(ruleset.get(), path, (kRead | kWriteDevice) & attributes.files));
  }
  if (syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, "landlock");
}

}  // namespace gridclock
