// What only hosts have: headers, namespaces, types.
#ifndef GRIDCLOCK_KERNELS_COMPILER_HOST_WORDS_H_
#define GRIDCLOCK_KERNELS_COMPILER_HOST_WORDS_H_

#include "absl/strings/string_view.h"

namespace gridclock {

// "torch/extension.h", "iostream", "cublas_v2.h".
bool IsHostHeader(absl::string_view name);
// "torch", "cudaStream_t": an identifier that no device code has.
bool IsHostWord(absl::string_view word);
// The member of namespace std: "vector".
bool IsHostStdWord(absl::string_view word);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_HOST_WORDS_H_
