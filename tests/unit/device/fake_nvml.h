#ifndef GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_NVML_H_
#define GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_NVML_H_

#include <vector>

namespace gridclock {

struct FakeNvml {
  int init_error = 0;
  unsigned clocks[3] = {};  // MHz of graphics, SM and memory; 0: not supported.
  unsigned milliwatts = 0;
  unsigned long long clock_reasons = 0;
  std::vector<unsigned> processes, mps_processes, graphics_processes;
  unsigned mig_mode = 0;
  unsigned long long memory_used = 0;  // Bytes; 0: not supported.
};

}  // namespace gridclock

// The one of the loaded library.
extern "C" gridclock::FakeNvml* TheFakeNvml();

#endif  // GRIDCLOCK_TESTS_UNIT_DEVICE_FAKE_NVML_H_
