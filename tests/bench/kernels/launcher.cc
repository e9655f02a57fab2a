// Runs kernels_bench_v2, _v3 or _v4 beside this program: the highest level that this machine has.
#include <string>

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "kernels/worker/cpu_level.h"

int main(int, char** argv) {
  const char* level = gridclock::ChooseLevel(gridclock::FeaturesHere(), "");
  if (level == nullptr) return 1;
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return 1;
  const std::string program = std::string(self) + "_" + level;
  execv(program.c_str(), argv);
  perror(program.c_str());
  return 1;
}
