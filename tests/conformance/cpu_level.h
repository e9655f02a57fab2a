// Whether this machine has the instructions that the catalogue linked here was built for.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_CPU_LEVEL_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_CPU_LEVEL_H_

#include "absl/strings/string_view.h"

namespace gridclock {

inline bool CpuHasLevel(absl::string_view level) {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (level == "x86-64-v4") return v4;
  if (level == "x86-64-v3") return v3;
  return __builtin_cpu_supports("sse4.2");
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_CPU_LEVEL_H_
