// gridclock-worker: becomes the worker that was built for this CPU. It is compiled for the plainest
// CPU, so that it can run where the others cannot.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

#include "kernels/worker/cpu_level.h"

namespace {

std::string OwnPath() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

int main(int, char** argv) {
  const char* variable = std::getenv("GRIDCLOCK_CPU_LEVEL");
  const std::string wanted = variable == nullptr ? "" : variable;
  const char* level = gridclock::ChooseLevel(gridclock::FeaturesHere(), wanted);
  if (level == nullptr) {
    std::fprintf(stderr,
                 "gridclock-worker: GRIDCLOCK_CPU_LEVEL: want v2, v3 or v4, one that this CPU has; "
                 "got '%s'\n",
                 wanted.c_str());
    return 2;
  }
  const std::string own = OwnPath();
  std::string path;
  for (; level != nullptr; level = gridclock::LevelBelow(level)) {
    path = own + "-" + level;
    execv(path.c_str(), argv);
    // Images may leave a level out to be smaller: the next lower one does the same, more slowly.
    if (errno != ENOENT || !wanted.empty()) break;
  }
  std::fprintf(stderr, "gridclock-worker: cannot run %s: %s\n", path.c_str(), std::strerror(errno));
  return 127;
}
