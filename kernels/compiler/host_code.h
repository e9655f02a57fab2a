// A .cu file as people have it holds host code too: what only a host can use is set aside, so that
// the rest compiles as device code.
#ifndef GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_
#define GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_

#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

struct DeviceSource {
  std::string
      text;  // As long as the source, with the same lines and columns: blanks for what is gone.
  std::vector<SourceNote> notes;  // By line.
};

// Set aside are: includes of headers that only hosts have, unless `known` has them; functions
// without
// __global__, __device__ or constexpr, with their declarations; types and variables made of what
// only hosts have; everything where such a function launches kernels. Directives of the
// preprocessor stay wherever they are. What a macro says of itself (#define DEVICE __device__) is
// understood, also of those in texts that stand `elsewhere`: headers, and definitions by options.
// Where braces do not balance only includes are set aside, and a note says so. Pure; any bytes do.
DeviceSource SetHostCodeAside(absl::string_view source, const std::set<std::string>& known,
                              std::span<const std::string> elsewhere = {});

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_HOST_CODE_H_
