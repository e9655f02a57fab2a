// What stands in for CUPTI in a build where its headers were not.
#include "kernels/device/cuda/cupti.h"

namespace gridclock {

absl::StatusOr<std::unique_ptr<Cupti>> Cupti::Load() {
  return absl::NotFoundError("this program was built where CUPTI's headers (cupti.h) were not");
}

}  // namespace gridclock
