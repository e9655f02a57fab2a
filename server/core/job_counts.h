// How many jobs each principal has of some kind.
#ifndef GRIDCLOCK_SERVER_CORE_JOB_COUNTS_H_
#define GRIDCLOCK_SERVER_CORE_JOB_COUNTS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace gridclock {

// Not thread-safe.
class JobCounts {
 public:
  void Add(absl::string_view principal) {
    ++of_[principal];
    ++all_;
  }
  // One that was added.
  void Remove(absl::string_view principal) {
    const auto found = of_.find(principal);
    if (--found->second == 0) of_.erase(found);
    --all_;
  }
  int all() const { return all_; }
  int of(absl::string_view principal) const {
    const auto found = of_.find(principal);
    return found == of_.end() ? 0 : found->second;
  }

 private:
  absl::flat_hash_map<std::string, int> of_;  // None is 0.
  int all_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_CORE_JOB_COUNTS_H_
