// What is told of an output beside its bytes.
#ifndef GRIDCLOCK_SERVER_FLEET_OUTPUT_RESULT_H_
#define GRIDCLOCK_SERVER_FLEET_OUTPUT_RESULT_H_

#include <cstddef>
#include <span>

#include "proto/types/job.h"

namespace gridclock {

// Of an output of submitted code, whose bytes lie in `memory` as TensorOffset says: no guest is
// asked for a checksum, as it could say any.
OutputResult ResultOf(const JobOutput& output, std::span<const std::byte> memory);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_OUTPUT_RESULT_H_
