#ifndef GRIDCLOCK_PROTO_TYPES_TENSOR_OFFSETS_H_
#define GRIDCLOCK_PROTO_TYPES_TENSOR_OFFSETS_H_

#include <cstdint>
#include <vector>

#include "proto/types/job.h"

namespace gridclock {

// TensorOffset() of each tensor, in one pass: a list may have 10,000.
std::vector<std::uint64_t> TensorOffsets(const OperandValue& value);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_TENSOR_OFFSETS_H_
