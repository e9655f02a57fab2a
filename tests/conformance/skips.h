// What a device does not run, and what a tool cannot see; each with its reason.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_SKIPS_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_SKIPS_H_

#include <optional>
#include <string>
#include <vector>

namespace gridclock {

// `pattern` fits names like "cpu/softmax/online/f16/plain"; "*" stands for any text.
struct Exception {
  std::string pattern;
  std::string reason;
};

struct Exceptions {
  std::vector<Exception> skipped;  // Not run.
  // Written in a way that initcheck does not see: what they write is poisoned before, or all of it
  // would be called uninitialised.
  std::vector<Exception> unseen;
};

const Exceptions& KnownExceptions();

bool Fits(const std::string& pattern, const std::string& name);
// The reason of the first pattern that fits.
std::optional<std::string> ReasonFor(const std::vector<Exception>& list, const std::string& name);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_SKIPS_H_
