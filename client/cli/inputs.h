// NAME=VALUE words of a command line: operands from files and generators, attributes.
#ifndef GRIDCLOCK_CLIENT_CLI_INPUTS_H_
#define GRIDCLOCK_CLIENT_CLI_INPUTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/npy.h"
#include "client/cpp/run.h"
#include "proto/types/binding.h"
#include "proto/types/generator.h"
#include "proto/types/kernel_spec.h"

namespace gridclock::cli {

// Where one tensor of an operand comes from. Exactly one of path and generator is set.
struct Source {
  std::string path;         // "a.npy", "weights.npz"
  std::string member;       // "w" of "weights.npz:w"; empty: all of them.
  std::optional<DType> as;  // "bf16" of "a.npy:bf16" and of "weights.npz:w:bf16"
  std::optional<Generator> generator;
  std::optional<TensorSpec> spec;  // Of a generator; may be missing where shapes come from --shape.
};
bool NamesFile(absl::string_view text);
// "a.npy", "a.npy:bf16", "w.npz:name", "w.npz:name:bf16", "randn:f32[1024,1024]",
// "uniform:-1:1:f32[8]", "ones"; "f32[8]" is made by the default of its dtype.
absl::StatusOr<Source> ParseSource(absl::string_view text);

// The words of one call, sorted by what the kernel's words say of their names.
struct NamedSources {
  std::string name;
  std::vector<Source> sources;  // More than one for a list.
};
struct Words {
  std::vector<NamedSources> operands;
  std::vector<NamedAttribute> attributes;
};
absl::StatusOr<Words> SortWords(const KernelSpec& spec, const std::vector<std::string>& words);

// "gelu.unfused" -> {"gelu", "unfused"}.
struct KernelName {
  std::string kernel, variant;
};
KernelName ParseKernelName(absl::string_view text);

enum class MakeOn { kServer, kClient };

// The inputs of a call and what keeps their bytes.
struct Inputs {
  std::vector<CallInput> inputs;
  std::vector<std::shared_ptr<const void>> keepers;
};
struct InputOptions {
  MakeOn make_on = MakeOn::kServer;
  std::uint64_t seed = 0;  // Input i of the kernel is made from seed + i.
};

// Loads and makes the operands. `shapes` are those of the inputs whose sources do not say (from
// SolveShapes), or empty. An operand without a source gets random values: randn, or for integers
// randint:0:100.
absl::StatusOr<Inputs> MakeInputs(const KernelSpec& spec, const Words& words,
                                  const std::vector<NamedOperand>& shapes,
                                  const InputOptions& options);

// `error` with how to convert an input that came as bytes, if it is of its dtype.
absl::Status WithConversion(const absl::Status& error, const RunCall& call);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_INPUTS_H_
