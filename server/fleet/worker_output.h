// What a worker prints, on its way into the log.
#ifndef GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_
#define GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gridclock {

// Lines are prefixed and escaped; of what is printed during one run the first 64 KiB are kept.
class WorkerOutput {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;

  explicit WorkerOutput(std::string device) : device_(std::move(device)) {}
  // Reads all that is there; the descriptor does not block.
  void Drain(int fd);
  // A run ended: the next may print again.
  void NextRun();
  std::size_t dropped() const { return dropped_; }

 private:
  void Take(absl::string_view text);
  void LogLine(absl::string_view line) const;

  const std::string device_;
  std::string line_;
  std::size_t taken_ = 0, dropped_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_WORKER_OUTPUT_H_
