// The kernels that a program was linked with: every file of this folder, built for one CPU level.
#ifndef GRIDCLOCK_KERNELS_CATALOG_CATALOG_H_
#define GRIDCLOCK_KERNELS_CATALOG_CATALOG_H_

#include <string>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"

namespace gridclock {

// Every kernel with its name, in the order of the names. Built afresh at each call.
std::vector<std::pair<std::string, KernelDef>> BuiltInKernels();

// The CPU level that the kernels are compiled for: "x86-64-v3". They must not be called on less.
const char* BuiltInLevel();

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_CATALOG_H_
