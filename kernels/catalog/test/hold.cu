// Hold: runs until it is let go. In test builds alone, for what is to be seen while a call runs.

#include <csignal>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// gridclock-test-worker blocks the signal from its start, so that one which comes early counts too.
absl::Status AwaitSignal(const Call&) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  int came = 0;
  sigwait(&signals, &came);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(hold) {
  return {
      .words = "",
      .summary = "Runs until its process gets SIGUSR1",
      .formula = "",
      .diagnostic = true,
      .cpu = {{"naive", "Waits for the signal", AwaitSignal}},
  };
}
