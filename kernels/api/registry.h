// The kernels of a worker: definitions with their words parsed.
#ifndef GRIDCLOCK_KERNELS_API_REGISTRY_H_
#define GRIDCLOCK_KERNELS_API_REGISTRY_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/api/kernel.h"

namespace gridclock {

struct RegisteredKernel {
  KernelSpec spec;  // Variants of every device kind; those of a definition in its order.
  KernelDef def;
};

class Registry {
 public:
  // INTERNAL that names the kernel if its words or clauses do not parse.
  static absl::StatusOr<Registry> Create(std::vector<std::pair<std::string, KernelDef>> defs);

  const RegisteredKernel* Find(absl::string_view name) const;  // Null if there is none.
  const std::map<std::string, RegisteredKernel, std::less<>>& kernels() const { return kernels_; }
  // The definition of a variant; null if there is none.
  static const Variant* FindVariant(const RegisteredKernel& kernel, absl::string_view device_kind,
                                    absl::string_view variant);

 private:
  std::map<std::string, RegisteredKernel, std::less<>> kernels_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_API_REGISTRY_H_
