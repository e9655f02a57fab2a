#ifndef GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_
#define GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "kernels/api/registry.h"

namespace gridclock {

// docs/kernels.md, all of it. A build without CUDA has no lines for which IsOfGpu() holds, a
// machine without cuBLASLt none that have kOfCublasLt.
std::string KernelsPage(const Registry& registry);

// Whether a line of the page is that of a variant for GPUs.
bool IsOfGpu(absl::string_view line);
// What lines of variants have that are there only where cuBLASLt is.
inline constexpr char kOfCublasLt[] = "| `cublaslt";

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_API_KERNELS_PAGE_H_
