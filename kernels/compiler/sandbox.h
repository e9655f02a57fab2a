// What keeps a compile from doing harm: a child of the compiler process, before it compiles a byte
// of a client's code, gives up everything that compiling does not need. It inherits the process's
// memory, from which other clients' orders were wiped (children.cc).
#ifndef GRIDCLOCK_KERNELS_COMPILER_SANDBOX_H_
#define GRIDCLOCK_KERNELS_COMPILER_SANDBOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/sandbox/landlock.h"

namespace gridclock {

struct SandboxLimits {
  std::uint64_t memory_bytes = std::uint64_t{2} << 30;  // Address space.
  std::uint32_t cpu_seconds = 5;
  std::uint64_t file_bytes = 0;  // That it may write to descriptors that it has.
};

struct Sandbox {
  SandboxLimits limits;
  std::vector<std::string> readable;  // Folders and files, with all below them.
  // A program that the child becomes, and its loader; empty: it may become none.
  std::vector<std::string> executable;
};

// The first that keeps a program, which writes its output to a file, from emptying others.
inline constexpr int kLandlockOfTools = 3;

// "landlock 7, seccomp".
std::string SandboxText(int landlock);

// For the rest of the process's life, and of programs that it becomes: limits of CPU, memory and
// files written; an end with its parent; of system calls only those that a compiler needs, none
// that connects, forks, traces or signals others; of files only those named, to read. Where there
// is no Landlock, none can be opened at all. FAILED_PRECONDITION if `executable` is not empty where
// Landlock is older than kLandlockOfTools.
// An error means that the process MUST end.
absl::Status EnterSandbox(const Sandbox& sandbox, int landlock);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_SANDBOX_H_
