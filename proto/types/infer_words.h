// The signature of a submitted kernel whose words were left out, from its parameters and the call.
#ifndef GRIDCLOCK_PROTO_TYPES_INFER_WORDS_H_
#define GRIDCLOCK_PROTO_TYPES_INFER_WORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/binding.h"
#include "proto/types/module.h"

namespace gridclock {

// What a call without words says: its tensors in the order of the call, and names.
struct UnwordedCall {
  std::vector<NamedOperand> inputs;
  std::vector<std::string> attributes;  // Names.
  std::vector<std::string> outputs;     // Names that the call has for outputs; may be fewer.
};

// "name signature params ..." for a kernel of one launch, and `block` where the code demands one.
// Grid and block are never inferred: the launch says them. The rule, which docs/submit.md explains:
//   - every parameter's type is known: a pointer to an element type, a whole number, float, double,
//   bool
//   - inputs belong to pointers by the parameters' names if they are all known; else in order, to
//   the
//     pointers to const if there are as many, or to all pointers if there are as many
//   - a pointer without an input is an output; one to const must have one; one that is not to const
//   and
//     has one is inout
//   - outputs have the shape that all inputs share
//   - attributes belong to numbers by name; a last attribute to the last number; a last whole
//   number
//     without one, called like a count if its name is known, is the number of elements of each
//     input; of inputs with several dimensions only by a name that can mean nothing else ("numel",
//     not "n")
// What this does not settle is INVALID_ARGUMENT: why, and the words to be completed. Pure.
absl::StatusOr<std::string> InferWords(const ModuleEntry& entry, const UnwordedCall& call);

// The words to be completed for an entry: what is not known is a question mark.
std::string WordsToComplete(const ModuleEntry& entry);

// A name of C++ as the words may have it: "N" becomes "n", "in" becomes "in_", "ns::Scale<float>"
// becomes "scale".
std::string WordsName(absl::string_view name);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_INFER_WORDS_H_
