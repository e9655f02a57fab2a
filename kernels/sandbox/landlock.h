// Files that a process may use for the rest of its life, by Landlock.
#ifndef GRIDCLOCK_KERNELS_SANDBOX_LANDLOCK_H_
#define GRIDCLOCK_KERNELS_SANDBOX_LANDLOCK_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gridclock {

// The version of Landlock here; 0 where the kernel or a container does not offer it.
int LandlockVersion();

// Folders and files, with all below them. What is in no list cannot be opened.
struct FileRules {
  std::vector<std::string> readable;
  std::vector<std::string> executable;  // And readable.
  std::vector<std::string> devices;     // To read, write and control.
};

// Of the calling thread and of those that it starts. From version 4 on TCP is gone too, from
// version 6 on signals to other processes and their abstract sockets. `version` is
// LandlockVersion() and above 0.
absl::Status RestrictFiles(const FileRules& rules, int version);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_SANDBOX_LANDLOCK_H_
