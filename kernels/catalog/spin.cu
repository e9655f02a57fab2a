// Spin: busy for a given time. A kernel whose right duration is known, to test timing with.

#include <chrono>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

absl::Status Wait(const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::nanoseconds(call.binding->I64("ns"));
  while (Clock::now() < end) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(spin) {
  using namespace gridclock;
  return {
      .words = "; ns: i64 = 20000 in [0, 600000000000]",
      .summary = "Busy for a given time",
      .formula = "t(end) - t(start) >= ns",
      .diagnostic = true,
      .cpu = {{"naive", "Reads the clock until the time is over", Wait}},
  };
}
