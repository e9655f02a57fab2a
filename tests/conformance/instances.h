// Calls made from the words of a kernel alone, so that a kernel is tested from the day it exists.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_

#include <cstdint>
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

// How large the tensors of a call are.
enum class Size : std::uint8_t {
  kSmall,  // 0, 1, 31, 32, 33, 1023 and primes; rank 0 to 8.
  kLarge,  // Beyond each size from which on a variant of the catalogue works in another way.
  kHuge,   // More than 2^31 elements.
};

// What inputs of more than 2^31 elements repeat: a prime, so that it repeats with no size of a
// block. Their long rows are an odd number of whole repetitions.
inline constexpr std::int64_t kHugePattern = 1'000'003;

// Calls with every dtype variable at `dtype`: small ones with every word of enums and bools and
// every place of an axis; each larger one with some of them. Only calls that bind; never none.
std::vector<Instance> InstancesOf(const KernelSpec& spec, DType dtype, Size size = Size::kSmall);

// Small calls besides these, of odd sizes up to 699 and attributes that `seed` chooses.
std::vector<Instance> RandomInstancesOf(const KernelSpec& spec, DType dtype, std::uint64_t seed);

// Those of the calls that a plain loop does in a moment; where there are none, the one of least
// work.
std::vector<Instance> ForPlainLoops(const KernelSpec& spec, const std::vector<Instance>& calls);

// Those of the calls whose lists are no longer than the arguments of a launch of 4096 bytes have
// room for: for who launches once for each tensor, longer ones are the same again.
std::vector<Instance> OfShortLists(const KernelSpec& spec, const std::vector<Instance>& calls);

std::string ToText(const Instance& instance);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_INSTANCES_H_
