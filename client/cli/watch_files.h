// Waits until a file changes, however an editor writes it.
#ifndef GRIDCLOCK_CLIENT_CLI_WATCH_FILES_H_
#define GRIDCLOCK_CLIENT_CLI_WATCH_FILES_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace gridclock::cli {

class FileWatch {
 public:
  // From here on no change is missed. Watched are the folders, because editors put a new file in
  // the place of the old one.
  static absl::StatusOr<std::unique_ptr<FileWatch>> Create(const std::vector<std::string>& files);

  // Waits until one of them is another file or has other content than before, and then until
  // nothing happens for 50 ms: some editors write in pieces. Whether there was a change within
  // `timeout`.
  absl::StatusOr<bool> WaitForChange(absl::Duration timeout = absl::InfiniteDuration());

 private:
  explicit FileWatch(UniqueFd fd) : fd_(std::move(fd)) {}
  // False if nothing happened in time.
  absl::StatusOr<bool> WaitForEvent(absl::Duration timeout);
  std::map<std::string, std::string> State() const;

  UniqueFd fd_;
  std::vector<std::string> files_;
  std::map<std::string, std::string> state_;  // Of each file, what shows a change.
};

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_WATCH_FILES_H_
