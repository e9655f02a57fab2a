// The levels of x86-64 that the catalogue is built for, and which of them a CPU has. Compiled for
// the plainest CPU: this runs where the levels cannot.
#ifndef GRIDCLOCK_KERNELS_WORKER_CPU_LEVEL_H_
#define GRIDCLOCK_KERNELS_WORKER_CPU_LEVEL_H_

#include <string>

namespace gridclock {

// What the levels promise beyond one another, as the compiler uses it without asking. A virtual
// machine may hide any of them.
enum CpuFeature : unsigned {
  kSse42 = 1 << 0,
  kPopcnt = 1 << 1,
  kAvx2 = 1 << 2,
  kFma = 1 << 3,
  kBmi = 1 << 4,
  kBmi2 = 1 << 5,
  kLzcnt = 1 << 6,  // Where it is absent the same bytes are another instruction: wrong, no trap.
  kMovbe = 1 << 7,
  kF16c = 1 << 8,
  kAvx512F = 1 << 9,
  kAvx512Bw = 1 << 10,
  kAvx512Cd = 1 << 11,
  kAvx512Dq = 1 << 12,
  kAvx512Vl = 1 << 13,
};

// The features of this machine that the operating system lets programs use, as bits.
unsigned FeaturesHere();

// "v4", "v3" or "v2": the best level that a CPU with `features` has, or `wanted` unless that is
// empty. Null if `wanted` is no level or not one of that CPU, or if the CPU has none.
const char* ChooseLevel(unsigned features, const std::string& wanted);

// The next lower one, which every CPU with that level has too. Null below the lowest.
const char* LevelBelow(const char* level);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_CPU_LEVEL_H_
