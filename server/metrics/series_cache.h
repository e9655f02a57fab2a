// From (kernel, device) to the series of that pair, without a lock once the pair was seen.
#ifndef GRIDCLOCK_SERVER_METRICS_SERIES_CACHE_H_
#define GRIDCLOCK_SERVER_METRICS_SERIES_CACHE_H_

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"

namespace gridclock {

// Entries are only ever added, so that a reader needs one atomic load for each slot it looks at.
// Bounded: once three quarters full it takes no more, and such pairs are made anew each time.
template <typename Value>
class SeriesCache {
 public:
  // Null if the pair is not there.
  const Value* Find(absl::string_view kernel, absl::string_view device) const {
    for (std::size_t slot = SlotOf(kernel, device);; slot = (slot + 1) % kSlots) {
      const Entry* entry = slots_[slot].load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->kernel == kernel && entry->device == device) return &entry->value;
    }
  }

  // False if it is full. A pair that is there keeps its value.
  bool Insert(absl::string_view kernel, absl::string_view device, Value value)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (Find(kernel, device) != nullptr) return true;
    if (entries_.size() >= kSlots / 4 * 3) return false;
    std::size_t slot = SlotOf(kernel, device);
    while (slots_[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) % kSlots;
    entries_.push_back(
        std::make_unique<Entry>(Entry{std::string(kernel), std::string(device), value}));
    slots_[slot].store(entries_.back().get(), std::memory_order_release);
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  struct Entry {
    std::string kernel, device;
    Value value;
  };
  static std::size_t SlotOf(absl::string_view kernel, absl::string_view device) {
    return absl::HashOf(kernel, device) % kSlots;
  }

  std::array<std::atomic<const Entry*>, kSlots> slots_{};
  Mutex mutex_;
  std::vector<std::unique_ptr<const Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_SERIES_CACHE_H_
