#include "kernels/sandbox/victim.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"

namespace gridclock {

void BeFirstVictim() {
  constexpr char kMost[] = "1000";
  const UniqueFd file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file && write(file.get(), kMost, sizeof(kMost) - 1) > 0) return;
  Log(LogLevel::kWarning, "oom_score_adj", {{"error", std::strerror(errno)}});
}

}  // namespace gridclock
