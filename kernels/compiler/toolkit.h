// Where CUDA's compilers lie on this machine.
#ifndef GRIDCLOCK_KERNELS_COMPILER_TOOLKIT_H_
#define GRIDCLOCK_KERNELS_COMPILER_TOOLKIT_H_

#include <string>
#include <vector>

namespace gridclock {

struct Toolkit {
  std::vector<std::string> nvrtc;     // To be tried in order; the last is left to the loader.
  std::vector<std::string> includes;  // Folders, without symbolic links.
  std::string ptxas, nvdisasm;        // Empty: not there.
};

// `home`: the toolkit's folder; empty: CUDA_HOME, CUDA_PATH, /usr/local/cuda in turn, the first
// with an NVRTC.
Toolkit FindToolkit(const std::string& home);

// Size and time of each file, which tell one build of it from another.
std::string Fingerprint(const std::vector<std::string>& paths);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_TOOLKIT_H_
