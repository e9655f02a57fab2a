// What an attribute may be.
#ifndef GRIDCLOCK_PROTO_TYPES_ATTRIBUTE_H_
#define GRIDCLOCK_PROTO_TYPES_ATTRIBUTE_H_

#include <string>

#include "absl/status/status.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

// "f64 in (0, 1]", "one of {tanh, none}".
std::string WantOf(const AttributeSpec& spec);

// Holds `value` against the type, the range and the set of `spec`. A whole number is taken for an
// f64 if a double holds it exactly; then `value` becomes that double. INVALID_ARGUMENT:
// "attribute 'eps': want f64 in (0, 1], got 5".
absl::Status CheckAttribute(const AttributeSpec& spec, AttributeValue& value);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_ATTRIBUTE_H_
