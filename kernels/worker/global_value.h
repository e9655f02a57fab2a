// What a variable of a module is set to.
#ifndef GRIDCLOCK_KERNELS_WORKER_GLOBAL_VALUE_H_
#define GRIDCLOCK_KERNELS_WORKER_GLOBAL_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/types/program.h"
#include "proto/types/tensor.h"

namespace gridclock {

// An attribute's value as a variable of `size` bytes has it: a whole number or a truth of 1, 2, 4
// or 8 bytes, an f64 as float or double. INVALID_ARGUMENT if it does not fit.
absl::StatusOr<std::vector<std::byte>> GlobalValue(const ProgramGlobal& global,
                                                   const AttributeValue& value, std::uint64_t size);
// INVALID_ARGUMENT unless the input is as large as the variable.
absl::Status CheckGlobalInput(const ProgramGlobal& global, const OperandValue& input,
                              std::uint64_t size);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_GLOBAL_VALUE_H_
