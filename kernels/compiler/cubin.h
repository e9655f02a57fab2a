// What a cubin says of its kernels. A cubin is an ELF file whose .nv.info sections list attributes;
// their numbers are those that `cuobjdump -elf` names EIATTR_*.
#ifndef GRIDCLOCK_KERNELS_COMPILER_CUBIN_H_
#define GRIDCLOCK_KERNELS_COMPILER_CUBIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

struct CubinFacts {
  std::string arch;  // "sm_90": a suffix is not told.
  std::uint64_t global_bytes = 0, constant_bytes = 0;
  std::vector<ModuleEntry> entries;  // By name; without spills.
};

// INVALID_ARGUMENT for what is no cubin or contradicts itself. Pure; any bytes do.
absl::StatusOr<CubinFacts> ReadCubin(absl::string_view bytes);

// "softmax<float, 256>" of "_Z7softmaxIfLi256EEvPKfPfi"; a name that is not mangled stays as it is.
std::string DisplayName(const std::string& mangled);
// "float const*", "float*", "int" of the same; none of a name that is not mangled.
std::vector<std::string> ParameterTypes(const std::string& mangled);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_CUBIN_H_
