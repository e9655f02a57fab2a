// What a worker prints, on its way into the log.
#ifndef GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_
#define GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace gridclock {

// Lines are prefixed and escaped; of what is printed during one run the first 64 KiB are kept. What
// may be a client's own words, as its tensors or its source, is counted and not shown.
class WorkerOutput {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;

  // `may_be_a_clients` is asked of each piece once it is read: by then it knows of every order that
  // the piece can come from.
  explicit WorkerOutput(
      std::string device, std::function<bool()> may_be_a_clients = [] { return false; })
      : device_(std::move(device)), may_be_a_clients_(std::move(may_be_a_clients)) {}
  // Reads all that is there; the descriptor does not block.
  void Drain(int fd);
  // A run ended: the next may print again.
  void NextRun();
  std::size_t dropped() const { return dropped_; }

 private:
  void Take(absl::string_view text);
  void Keep(absl::string_view text);
  void LogLine(absl::string_view line) const;

  const std::string device_;
  const std::function<bool()> may_be_a_clients_;
  std::string line_;
  std::size_t taken_ = 0, dropped_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_
