// A worker process from its arguments to its end.
#ifndef GRIDCLOCK_KERNELS_WORKER_WORKER_H_
#define GRIDCLOCK_KERNELS_WORKER_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/worker/link.h"
#include "kernels/worker/native.h"

namespace gridclock {

struct WorkerParts {
  std::vector<std::pair<std::string, KernelDef>> kernels;
  std::string level;  // Of the kernels' code: "x86-64-v3".
  // Puts something before the link; test workers break frames there. Null: nothing.
  std::function<std::unique_ptr<Link>(std::unique_ptr<Link>)> wrap_link = nullptr;
  Natives natives = {};  // That a guest runs by name; of test builds alone.
  bool keep_scratch = false, keep_shared = false;  // As GuestParts.
};

// Returns the exit code: 0 when the server said so or is gone, or the launch of --bare succeeded; 2
// for wrong arguments, 1 otherwise.
int RunWorker(int argc, char** argv, WorkerParts parts);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_WORKER_H_
