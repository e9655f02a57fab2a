// What nvcc gives every .cu file and NVRTC gives none: names of the C library's headers that device
// code uses, and those headers themselves.
#ifndef GRIDCLOCK_KERNELS_COMPILER_PRELUDE_H_
#define GRIDCLOCK_KERNELS_COMPILER_PRELUDE_H_

#include <string>
#include <vector>

#include "proto/types/module.h"

namespace gridclock {

// <stdint.h>, <cmath>, <limits>, ...: as headers in memory, and the prelude that Prelude()
// includes.
const std::vector<SourceText>& BuiltInHeaders();

// The line that goes before a source; what follows is line 1 of the file `name` again.
std::string Prelude(const std::string& name);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_PRELUDE_H_
