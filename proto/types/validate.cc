#include "absl/status/status.h"
#include "proto/types/kernel_spec.h"
namespace gridclock {
absl::Status Validate(const KernelSpec&) { return absl::OkStatus(); }
}  // namespace gridclock
