#include "kernels/sandbox/capabilities.h"

#include <cerrno>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"

namespace gridclock {

absl::Status DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, "capset");
}

}  // namespace gridclock
