// Empty: does nothing. What it costs is what any launch costs; timings are read beside it.

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

absl::Status Nothing(const Call&) {
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(empty) {
  using namespace gridclock;
  return {
      .words = "",
      .summary = "Nothing: the cost of a launch",
      .formula = "",
      .diagnostic = true,
      .cpu = {{"naive", "Returns at once", Nothing}},
  };
}
