// One call of one variant, checked in every way that needs no knowledge of the kernel.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_HARNESS_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_HARNESS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/api/registry.h"
#include "kernels/device/device.h"
#include "tests/conformance/instances.h"

namespace gridclock {

// What the inputs hold.
enum class Data : std::uint8_t {
  kPlain,    // Standard normal numbers.
  kWide,     // -1000 to 1000: exp overflows.
  kSpecial,  // Normal numbers with NaN and infinities among them.
  kExtreme,  // The largest, the least and the subnormal numbers, and infinities.
  kHuge,     // From somewhat below the root of the largest number up to it.
  kTiny,     // Subnormal numbers, and those whose squares are.
  kFar,      // Far from zero, and near each other: what differences of large numbers lose.
  kSpikes,   // Normal numbers, a few of them far larger than all others.
  kDecided,  // Normal numbers, one of which decides what a row comes to: deciders.h.
};

// Where the tensors of a call lie, and what those that it writes held before.
enum class Memory : std::uint8_t {
  kGuarded,    // Between guards, poisoned.
  kExact,      // Each in memory of its own of just its size, poisoned: a tool looks on.
  kUnwritten,  // The same, but never written before: the tool sees what is read all the same.
};

struct CheckOptions {
  std::uint64_t seed = 1;
  Data data = Data::kPlain;
  bool misaligned = false;  // Tensors begin one element past the alignment of the device.
  Memory memory = Memory::kGuarded;
  // More than this, and a random subset is compared with the reference.
  std::int64_t most_terms = std::int64_t{1} << 36;
};

// What was wrong; empty if nothing was. Checks: the status; the outputs against the reference; that
// all of each output is written and nothing beside it; that inputs stay as they were; that a second
// run gives the same bits; and, where the words allow it, the same in place.
std::vector<std::string> CheckCall(Device& device, const RegisteredKernel& kernel,
                                   const Variant& variant, const Instance& instance,
                                   const CheckOptions& options);

// How often CheckCall launched "kernel.variant".
std::int64_t& LaunchesOf(const RegisteredKernel& kernel, const Variant& variant);
const std::map<std::string, std::int64_t>& AllLaunches();

// The tool of compute-sanitizer that looks on, GRIDCLOCK_TEST_TOOL; empty: none does.
std::string TestTool();

// GRIDCLOCK_TEST_SEED, or one from the clock.
std::uint64_t TestSeed();

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_HARNESS_H_
