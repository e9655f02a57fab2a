// A tool of CUDA run on bytes of a client, in a sandbox of its own.
#ifndef GRIDCLOCK_KERNELS_COMPILER_TOOL_H_
#define GRIDCLOCK_KERNELS_COMPILER_TOOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/compiler/sandbox.h"

namespace gridclock {

struct ToolRun {
  std::string program;
  std::vector<std::string> args;  // "@in" and "@out" stand for the files of input and output.
  absl::string_view input;
  SandboxLimits limits;
};
struct ToolOutput {
  int code = 0, signal = 0;
  std::string text;  // What it printed.
  std::string file;  // What it wrote to "@out".
};

// Folders and files that programs of this machine need to start, those that are there.
std::vector<std::string> SystemLibraries();
// The program loader.
std::string SystemLoader();

// Forks, and waits. INTERNAL if the sandbox cannot be made.
absl::StatusOr<ToolOutput> RunTool(const ToolRun& run, int landlock);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_TOOL_H_
