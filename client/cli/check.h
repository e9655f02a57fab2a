// A kernel held against another on the same fresh inputs, by the client.
#ifndef GRIDCLOCK_CLIENT_CLI_CHECK_H_
#define GRIDCLOCK_CLIENT_CLI_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "client/cli/compare.h"
#include "client/cli/json.h"
#include "client/cli/measure_flags.h"
#include "client/cli/subject.h"
#include "client/cpp/run.h"

namespace CLI {
class App;
}

namespace gridclock::cli {

struct CheckFlags {
  std::string against;              // A kernel of the catalogue.
  std::vector<std::string> with;    // Its attributes, where the checked kernel has others.
  int rounds = 3;                   // Each on inputs of its own.
  std::optional<double> tolerance;  // None: that of the dtype.
};

// All but --against, which a command may demand.
void AddCheckFlags(CLI::App& app, CheckFlags* flags);

struct CheckedOutput {
  std::string name;
  double tolerance = 0;
  Difference difference;
};
struct CheckResult {
  std::string against, device;
  std::uint64_t seed = 0;
  int rounds = 0;
  std::vector<CheckedOutput> outputs;

  bool ok() const;
};

// Adds one round: outputs belong together by name if both have the same names, else in order.
absl::Status CompareOutputs(const RunResult& got, const RunResult& want, const CheckFlags& flags,
                            CheckResult* result);

// Runs both on the same inputs, round by round, and compares their outputs. The reference is itself
// verified by the server.
absl::StatusOr<CheckResult> Check(const Session& session, const Client& client,
                                  const Subject& subject, const CallFlags& call,
                                  const CheckFlags& flags);

std::string CheckText(const CheckResult& result, const Terminal& terminal);
Json ToJson(const CheckResult& result);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_CHECK_H_
