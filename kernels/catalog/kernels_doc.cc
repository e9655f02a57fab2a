// Prints docs/kernels.md.
#include <iostream>

#include "absl/strings/match.h"
#include "kernels/api/kernels_page.h"
#include "kernels/catalog/catalog.h"

int main() {
  const auto registry = gridclock::Registry::Create(gridclock::BuiltInKernels());
  if (!registry.ok()) {
    std::cerr << registry.status() << "\n";
    return 1;
  }
  const std::string page = gridclock::KernelsPage(*registry);
  if (!gridclock::IsOfGpu(page) || !absl::StrContains(page, gridclock::kOfCublasLt)) {
    std::cerr << "the page would lack variants for GPUs: want a build with GRIDCLOCK_CUDA=ON and "
                 "cuBLASLt beside it\n";
    return 1;
  }
  std::cout << page;
}
