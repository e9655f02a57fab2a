// The options that run, bench and load share, and what they come to for a kernel.
#ifndef GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_
#define GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/inputs.h"
#include "client/cpp/run.h"
#include "proto/types/kernel_spec.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace gridclock::cli {

// What a person says of the call.
struct CallFlags {
  std::string kernel, device, generate, kernel_limit;
  std::vector<std::string> words, shapes, dtypes;
  std::optional<std::uint64_t> seed;  // None: 0, and of a check another each time.
};
void AddCallFlags(CLI::App& app, CallFlags* flags);
// A number of `low` to `high`. CLI::Range lets NaN through.
CLI::Validator Between(double low, double high);
// --seed alone.
void AddSeedFlag(CLI::App& app, std::optional<std::uint64_t>* seed);
// "gelu.naive" and --variant must not contradict each other.
absl::Status CheckOneVariant(absl::string_view kernel, absl::string_view variant);

// Its words that name operands and attributes, not sizes.
std::vector<std::string> TensorWords(const CallFlags& flags);

struct MadeCall {
  RunCall call;
  Inputs inputs;  // Keeps the bytes of the call.
};
// Outputs come back, unless the caller says otherwise. `default_dim`: for dimensions not named.
absl::StatusOr<MadeCall> MakeCall(const KernelSpec& spec, const CallFlags& flags,
                                  std::optional<std::int64_t> default_dim);

// Nothing comes back but the time.
void DiscardOutputs(const KernelSpec& spec, RunCall* call);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_MEASURE_FLAGS_H_
