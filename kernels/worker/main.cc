// gridclock-worker-v2, -v3, -v4: the same program with the catalogue of one CPU level.
#include "kernels/catalog/catalog.h"
#include "kernels/worker/worker.h"

int main(int argc, char** argv) {
  return gridclock::RunWorker(
      argc, argv, {.kernels = gridclock::BuiltInKernels(), .level = gridclock::BuiltInLevel()});
}
