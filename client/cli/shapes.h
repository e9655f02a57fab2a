// From names to shapes: what `bench` and `load` need to make inputs of a kernel. Pure.
#ifndef GRIDCLOCK_CLIENT_CLI_SHAPES_H_
#define GRIDCLOCK_CLIENT_CLI_SHAPES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/binding.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/tensor.h"

namespace gridclock::cli {

// What a person said. Keys are names of dimensions ("N"), of runs ("*", "A" or "*A") and of dtype
// variables ("T"; "" for all).
struct ShapeWishes {
  // One shape; several for the tensors of a list ("*=8,16x4"). A dimension has one of rank 1.
  std::map<std::string, std::vector<Shape>> shapes;
  std::map<std::string, DType> dtypes;
  std::optional<std::int64_t> default_dim;  // For dimensions not named; none: they must be named.
};

// "N=1M" or "*=8x1024" into `wishes`.
absl::Status AddShape(absl::string_view text, ShapeWishes* wishes);
// "T=bf16" or "bf16".
absl::Status AddDType(absl::string_view text, ShapeWishes* wishes);

// The inputs of `spec`, in its order, that the wishes and the attributes ask for; those in `told`
// bring their own shapes and are left out. Where the words have no dimension of a wish's name and
// one run, the wish is the run's: N=1M of `T[*]` is *=1M. INVALID_ARGUMENT names what is missing or
// too much.
absl::StatusOr<std::vector<NamedOperand>> SolveShapes(const KernelSpec& spec,
                                                      const ShapeWishes& wishes,
                                                      const std::vector<NamedAttribute>& given,
                                                      const std::set<std::string>& told = {});

// INVALID_ARGUMENT for a wish that no input uses but those of `told`, which bring their own shapes:
// their names, and a sentence each on where from.
absl::Status CheckWishes(const KernelSpec& spec, const ShapeWishes& wishes,
                         const std::map<std::string, std::string>& told);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_SHAPES_H_
