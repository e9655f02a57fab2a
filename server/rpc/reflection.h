#ifndef GRIDCLOCK_SERVER_RPC_REFLECTION_H_
#define GRIDCLOCK_SERVER_RPC_REFLECTION_H_

#include "absl/status/status.h"

namespace gridclock {

// Servers that are built from now on show their services by grpc.reflection.v1alpha. Opens gRPC's
// library at run time, because a program that links it serves reflection whether it wants to or
// not. UNAVAILABLE if the library is not installed.
absl::Status EnableReflection();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_REFLECTION_H_
