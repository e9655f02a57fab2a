// Runs kernels_bench_v2, _v3 or _v4 beside this program: the highest level that this machine has.
// OpenBLAS has its best kernels of that level: of a CPU newer than itself it takes those without
// AVX, a fifth as fast.
#include <string>
#include <string_view>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/worker/cpu_level.h"

int main(int, char** argv) {
  const char* level = gridclock::ChooseLevel(gridclock::FeaturesHere(), "");
  if (level == nullptr) return 1;
  if (std::string_view(level) == "v4") setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
  if (std::string_view(level) == "v3") setenv("OPENBLAS_CORETYPE", "HASWELL", 1);
  char self[PATH_MAX] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return 1;
  const std::string program = std::string(self) + "_" + level;
  execv(program.c_str(), argv);
  perror(program.c_str());
  return 1;
}
