// Modules on disk: what was compiled once need not be compiled again, also after a restart.
#ifndef GRIDCLOCK_SERVER_FLEET_MODULE_CACHE_H_
#define GRIDCLOCK_SERVER_FLEET_MODULE_CACHE_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "proto/types/module.h"

namespace gridclock {

// One file for each module, written beside its place and renamed, so that whoever sees it sees all
// of it; its checksum is compared when it is read. Once there are too many bytes, whoever has most
// of them loses what it used longest ago. Thread-safe.
class ModuleCache {
 public:
  // Makes the folder, and finds what is there. FAILED_PRECONDITION if it cannot be written.
  static absl::StatusOr<std::unique_ptr<ModuleCache>> Open(const std::string& folder,
                                                           std::uint64_t most_bytes);

  // A file that is not what was written is removed. NOT_FOUND if there is none of this principal.
  absl::StatusOr<ModuleCode> Read(absl::string_view principal, const std::string& id)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What fails is logged: a cache is not needed to go on.
  void Write(absl::string_view principal, const std::string& id, const ModuleCode& module)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // True if this principal had it.
  bool Remove(absl::string_view principal, const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);

  std::uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct File {
    std::uint64_t size = 0;
    std::string principal;
    std::list<std::string>::iterator place;
  };
  ModuleCache(std::string folder, std::uint64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes) {}
  absl::Status FindFiles() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string PathOf(absl::string_view id) const;
  using Files = std::map<std::string, File, std::less<>>;
  void Note(const std::string& id, const std::string& principal, std::uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlist(Files::iterator file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestOfLargest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const std::uint64_t most_bytes_;
  mutable Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);                                // By id.
  std::list<std::string> by_use_ ABSL_GUARDED_BY(mutex_);              // Longest ago first.
  std::map<std::string, std::uint64_t> held_ ABSL_GUARDED_BY(mutex_);  // Bytes by principal.
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_FLEET_MODULE_CACHE_H_
