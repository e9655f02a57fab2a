// What the doctor says of the parts that a server told of itself.
#ifndef GRIDCLOCK_CLIENT_CLI_FINDINGS_H_
#define GRIDCLOCK_CLIENT_CLI_FINDINGS_H_

#include <span>
#include <string>
#include <vector>

#include "gridclock/v1/system.pb.h"

namespace gridclock::cli {

// One line of the report.
struct Finding {
  bool good = true;
  std::string part, text;  // A version, or "missing: " with what that means.
  friend bool operator==(const Finding&, const Finding&) = default;
};

// "ok", "without" of what is missing and not needed, or "no", with which the doctor ends with 1.
std::string StatusOf(const Finding& finding);

// A process that the server starts with itself has not told of itself yet: a worker, the compiler,
// the first guest of a device.
bool IsStarting(const v1::ServerInfo& info, std::span<const v1::Device> devices);

// Workers, what serves GPUs, what compiles and what holds submitted code. A part that was not asked
// for is no fault.
std::vector<Finding> PartsOf(const v1::ServerInfo& info, std::span<const v1::Device> devices);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_FINDINGS_H_
