// The options that bench and load share, and what they come to for a kernel.
#ifndef GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_
#define GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/inputs.h"
#include "client/cpp/run.h"
#include "proto/types/kernel_spec.h"

namespace CLI {
class App;
}

namespace gridclock::cli {

// What a person says of the call.
struct CallFlags {
  std::string kernel, device, generate, kernel_limit;
  std::vector<std::string> words, shapes, dtypes;
  std::uint64_t seed = 0;
};
void AddCallFlags(CLI::App& app, CallFlags* flags);

struct MadeCall {
  RunCall call;
  Inputs inputs;  // Keeps the bytes of the call.
};
// Outputs come back, unless the caller says otherwise. `default_dim`: for dimensions not named.
absl::StatusOr<MadeCall> MakeCall(const KernelSpec& spec, const CallFlags& flags,
                                  std::optional<std::int64_t> default_dim);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_
