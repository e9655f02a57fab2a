// std::mutex with clang's thread-safety annotations. absl::Mutex is not used: Debian's abseil is
// not built for ThreadSanitizer, which then reports races that are none.
#ifndef GRIDCLOCK_BASE_MUTEX_H_
#define GRIDCLOCK_BASE_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace gridclock {

class ABSL_LOCKABLE Mutex {
 public:
  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  bool try_lock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  void unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_MUTEX_H_
