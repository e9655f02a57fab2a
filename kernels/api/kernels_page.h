#ifndef GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_
#define GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "kernels/api/registry.h"

namespace gridclock {

// docs/kernels.md, all of it. Variants that this build cannot know, for GPUs where it is without
// CUDA and cuBLASLt's where that library is not, keep the lines that they have in `committed`.
std::string KernelsPage(const Registry& registry, absl::string_view committed);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_
