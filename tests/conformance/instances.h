// Calls made from the words of a kernel alone, so that a kernel is tested from the day it exists.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_

#include <string>
#include <vector>

#include "proto/types/binding.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

struct Instance {
  std::vector<NamedOperand> inputs;
  std::vector<NamedAttribute> attributes;
};

// The dtypes that the words allow for their first dtype variable; one f32 where there is none.
std::vector<DType> DTypesOf(const KernelSpec& spec);

// Calls with every dtype variable at `dtype`: sizes 0, 1, 31, 32, 33, 1023 and primes, rank 0 to 8,
// every word of enums and bools, every place of an axis. Only calls that bind; never none.
std::vector<Instance> InstancesOf(const KernelSpec& spec, DType dtype);

std::string ToText(const Instance& instance);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_
