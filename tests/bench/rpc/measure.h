// What the benchmark programs share: a clock, order statistics, and exact reads and writes.
#ifndef GRIDCLOCK_TESTS_BENCH_RPC_MEASURE_H_
#define GRIDCLOCK_TESTS_BENCH_RPC_MEASURE_H_

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sched.h>
#include <time.h>
#include <unistd.h>

namespace gridclock::bench {

inline std::int64_t NowNs() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

// A benchmark that went wrong has nothing to report.
[[noreturn]] inline void Fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline double Quantile(std::vector<std::int64_t> values, double q) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<std::size_t>(q * values.size()));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return static_cast<double>(values[at]);
}

inline void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) Fail("sched_setaffinity");
}

inline void WriteAll(int fd, const char* data, std::size_t size, std::size_t step) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = write(fd, data + done, std::min(step, size - done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) Fail("write");
    done += n;
  }
}

inline void ReadAll(int fd, char* data, std::size_t size, std::size_t step) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = read(fd, data + done, std::min(step, size - done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) Fail("read");
    done += n;
  }
}

}  // namespace gridclock::bench

#endif  // GRIDCLOCK_TESTS_BENCH_RPC_MEASURE_H_
