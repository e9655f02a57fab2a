// For people who mistyped.
#ifndef GRIDCLOCK_PROTO_TYPES_NEAR_NAMES_H_
#define GRIDCLOCK_PROTO_TYPES_NEAR_NAMES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gridclock {

// Up to three of `names` that `wanted` may have meant, the nearest first: "'gelu', 'relu'". Empty
// if none is near.
std::string NearestNames(absl::string_view wanted, const std::vector<absl::string_view>& names);

// Whether Kubernetes gives a variable of this name to what runs beside a service: "TLS_PORT",
// "TLS_SERVICE_HOST", "TLS_PORT_443_TCP".
bool IsOfAService(absl::string_view name);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_NEAR_NAMES_H_
