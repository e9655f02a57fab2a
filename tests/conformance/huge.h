// Calls of more than 2^31 elements on a device with memory of its own. Nothing of that size comes
// to the host at once: inputs repeat a pattern, and outputs are looked at in parts.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_HUGE_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_HUGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/api/registry.h"
#include "kernels/device/device.h"
#include "tests/conformance/instances.h"

namespace gridclock {

struct HugeResult {
  std::vector<std::string> problems;
  std::int64_t units = 0;  // How many, or how many elements of a long one, were compared.
};

// Checks the first and the last units, those about 2^31 and 2^32 elements, and some that `seed`
// chooses, against the reference; where each element depends on those at its place alone, all of
// them; that a second run gives the same bits; and the guards. Of a unit of so many elements that
// the host cannot compute it, elements are compared, chosen in the same way. Of one row of all
// elements the last one decides what is right: a kernel that stops before it is wrong.
HugeResult CheckHugeCall(Device& device, const RegisteredKernel& kernel, const Variant& variant,
                         const Instance& instance, std::uint64_t seed);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_HUGE_H_
