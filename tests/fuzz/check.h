// A property that must hold for every input: a fuzzer stops where it does not.
#ifndef GRIDCLOCK_TESTS_FUZZ_CHECK_H_
#define GRIDCLOCK_TESTS_FUZZ_CHECK_H_

#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                        \
    }                                                                      \
  } while (false)

#endif  // GRIDCLOCK_TESTS_FUZZ_CHECK_H_
