// What an open-loop load found. Pure; fed by the load loop.
#ifndef GRIDCLOCK_CLIENT_CLI_LOAD_STATS_H_
#define GRIDCLOCK_CLIENT_CLI_LOAD_STATS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gridclock::cli {

class LoadStats {
 public:
  // `latency` counts from when the request was due, not from when it was sent: a server that stalls
  // must not be asked less often and look fast.
  void Add(const absl::Status& status, absl::Duration latency);

  std::int64_t answered() const { return answered_; }
  std::int64_t ok() const { return static_cast<std::int64_t>(ok_ns_.size()); }
  const std::map<std::string, std::int64_t>& errors() const { return errors_; }
  // Of the successful ones, if there are any. 0 <= q <= 1, the nearest rank.
  std::optional<double> QuantileNs(double q) const;
  // Only of as many as can tell it.
  std::optional<double> P90Ns() const;
  std::optional<double> P99Ns() const;

 private:
  std::int64_t answered_ = 0;
  std::vector<double> ok_ns_;
  std::map<std::string, std::int64_t> errors_;  // "RESOURCE_EXHAUSTED QUEUE_FULL" -> 3
};

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_LOAD_STATS_H_
