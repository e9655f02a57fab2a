// How many descriptors this process may open, and what of them is left for connections.
#ifndef GRIDCLOCK_SERVER_RPC_DESCRIPTORS_H_
#define GRIDCLOCK_SERVER_RPC_DESCRIPTORS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/core/limits.h"

namespace gridclock {

// Raises RLIMIT_NOFILE as far as the system lets us; returns what it then is.
std::uint64_t RaiseDescriptorLimit();

// Lowers `limits.connections` to what `descriptors` leave beside those that `workers` processes and
// the server itself need: clients who hold all connections must not keep a worker from coming back.
// INVALID_ARGUMENT where none is left.
absl::Status FitConnections(std::uint64_t descriptors, std::size_t workers, Limits& limits);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_DESCRIPTORS_H_
