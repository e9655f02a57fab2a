// One order of the server, done in a child of the compiler process.
#ifndef GRIDCLOCK_KERNELS_COMPILER_WORK_H_
#define GRIDCLOCK_KERNELS_COMPILER_WORK_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gridclock/worker/v1/compiler.pb.h"
#include "kernels/compiler/nvrtc.h"
#include "kernels/compiler/sandbox.h"
#include "kernels/compiler/toolkit.h"

namespace gridclock {

struct WorkLimits {
  SandboxLimits sandbox;
  std::size_t log_bytes = 16 * 1024;
  std::size_t output_bytes = 16 * 1024 * 1024;  // PTX, cubin, SASS: each.
};

// What a child works with: made once, warm, by the process that forks it.
struct Tools {
  Toolkit toolkit;
  std::unique_ptr<Nvrtc> nvrtc;  // Null: not there, and `no_nvrtc` says why.
  std::string no_nvrtc;
  int landlock = 0;
};

// Says hello's facts.
void Describe(const Tools& tools, worker::v1::CompilerHello* out);
// Compiles a line in this process, so that no child pays for what the first compile loads. Empty
// `arch`: the newest that NVRTC knows. What NVRTC loads for one is of little use to another.
absl::Status WarmUp(const Tools& tools, const std::string& arch);

// Enters the sandbox, for good, and does the work. A source that does not compile is a result. An
// error means that nothing was compiled; FAILED_PRECONDITION: a tool is missing;
// RESOURCE_EXHAUSTED: what was made is longer than `output_bytes`; ABORTED: the compiler gave up.
absl::StatusOr<worker::v1::CompilerResult> DoWork(const worker::v1::CompilerOrder& order,
                                                  const Tools& tools, const WorkLimits& limits);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_WORK_H_
