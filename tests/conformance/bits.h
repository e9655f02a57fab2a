// What the reference does not see, as it is computed in double: the sign of a zero, and the last
// digits of integers of 64 bits.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_BITS_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_BITS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/api/kernel.h"

namespace gridclock {

// Bits of integers that no double holds, of the ends of both types of 64 bits, and of numbers just
// above the middle between two of f32 or bf16, where a double would round them to.
std::vector<std::uint64_t> LongIntegers();

// An element of output 0 that is wrong beyond what the reference sees. Of kernels that move
// elements all bits are known; of a cast to integers of 64 bits too; of others that round once or
// never the sign of a zero. What is left of the catalogue promises none of it.
std::optional<std::string> WrongBits(const KernelDef& def, const Binding& binding,
                                     std::span<const OperandView> inputs,
                                     std::span<const OperandView> outputs);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_BITS_H_
