// What gRPC itself has to say.
#ifndef GRIDCLOCK_SERVER_RPC_GRPC_LOG_H_
#define GRIDCLOCK_SERVER_RPC_GRPC_LOG_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace gridclock {

// Lets so many lines through in each second and counts the others. Thread-safe.
class LineBudget {
 public:
  explicit LineBudget(int lines_per_second) : most_(lines_per_second) {}
  // How many were held back since the last one that went through; nullopt: this one is, too.
  std::optional<std::uint64_t> Take(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const int most_;
  Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t held_back_ ABSL_GUARDED_BY(mutex_) = 0;
};

// From now on gRPC's lines go to our log, escaped, cut and a few in a second at most: they quote
// what clients sent, before anyone knows who they are.
void TameGrpcLog();

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_GRPC_LOG_H_
