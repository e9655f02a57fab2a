// What words must keep where further clauses are held against them.
#ifndef GRIDCLOCK_PROTO_TYPES_VALIDATE_H_
#define GRIDCLOCK_PROTO_TYPES_VALIDATE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

using ClauseCheck = std::function<absl::Status(const Clauses& clauses)>;

// As Validate; and what then holds the clauses of launches against the same words, without reading
// those again: all but flops, bytes, when and scratch, which are the words' own. `words` outlives
// it.
absl::StatusOr<ClauseCheck> ValidateWords(const KernelSpec& words);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_VALIDATE_H_
