// What a kernel's parameters are called and of which types they are: what a cubin does not say.
#ifndef GRIDCLOCK_KERNELS_COMPILER_PARAMETERS_H_
#define GRIDCLOCK_KERNELS_COMPILER_PARAMETERS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

// Types come from mangled names; names, and the types of what is extern "C", from the one place of
// the source that has `__global__ ... NAME(...)`. What does not fit the number of parameters is
// left out. Pure; any bytes do.
void DescribeParameters(absl::string_view source, std::vector<ModuleEntry>* entries);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_PARAMETERS_H_
