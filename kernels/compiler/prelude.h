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

// What goes before a source; what follows is line 1 of the file `name` again. `own_ulong`: it has a
// `ulong` of its own. On hosts `typedef uint64_t ulong` names the type that it names there already;
// here uint64_t is another one.
std::string Prelude(const std::string& name, bool own_ulong);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_PRELUDE_H_
