// gridclock-worker: becomes the worker that was built for this CPU. It is compiled for the plainest
// CPU, so that it can run where the others cannot.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <unistd.h>

namespace {

struct Level {
  const char* name;
  bool (*runs_here)();
};

#if defined(__x86_64__)
bool HasV2() {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}
bool HasV3() {
  return HasV2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool HasV4() {
  return HasV3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#else
#error "the catalogue is built for x86-64 levels alone"
#endif

constexpr Level kLevels[] = {{"v4", HasV4}, {"v3", HasV3}, {"v2", HasV2}};

// Null if `wanted` is no level, or not one of this CPU; the best one if it is empty.
const Level* Choose(const std::string& wanted) {
  for (const Level& level : kLevels) {
    if ((wanted.empty() || wanted == level.name) && level.runs_here()) return &level;
  }
  return nullptr;
}

std::string OwnPath() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

int main(int, char** argv) {
  const char* wanted = std::getenv("GRIDCLOCK_CPU_LEVEL");
  const Level* level = Choose(wanted == nullptr ? "" : wanted);
  if (level == nullptr) {
    std::fprintf(stderr,
                 "gridclock-worker: GRIDCLOCK_CPU_LEVEL: want v2, v3 or v4, one that this CPU has; "
                 "got '%s'\n",
                 wanted == nullptr ? "" : wanted);
    return 2;
  }
  const std::string path = OwnPath() + "-" + level->name;
  execv(path.c_str(), argv);
  std::fprintf(stderr, "gridclock-worker: cannot run %s: %s\n", path.c_str(), std::strerror(errno));
  return 127;
}
