// An input that is made from a seed, as people write it: "randn:f32[1024]", "uniform:-1:1:f32[8]".
#ifndef GRIDCLOCK_PROTO_TYPES_MADE_INPUT_H_
#define GRIDCLOCK_PROTO_TYPES_MADE_INPUT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/generator.h"
#include "proto/types/tensor.h"

namespace gridclock {

struct MadeInput {
  Generator generator;
  TensorSpec spec;
};
// A spec alone, "f32[1024]", is made by the default of its dtype.
absl::StatusOr<MadeInput> ParseMadeInput(absl::string_view text);

// What makes an input of which nothing is said: randn, or for integers randint:0:100.
Generator DefaultGenerator(DType dtype);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_MADE_INPUT_H_
