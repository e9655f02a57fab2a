// What ptxas -v says, sorted: facts of entries, and what is for people.
#ifndef GRIDCLOCK_KERNELS_COMPILER_PTXAS_LOG_H_
#define GRIDCLOCK_KERNELS_COMPILER_PTXAS_LOG_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace gridclock {

struct Spills {
  std::uint64_t stores = 0, loads = 0;  // Bytes.
};

struct PtxasLog {
  std::string rest;                      // The lines that state no facts: warnings and errors.
  std::map<std::string, Spills> spills;  // By the mangled name of a function.
  double milliseconds = 0;               // That it took, of all functions.
};

// Also of a log in which other messages stand between its own.
PtxasLog ReadPtxasLog(absl::string_view log);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_PTXAS_LOG_H_
