// From (kernel, variant, device) to the series of these, without a lock once they were seen
// together.
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

struct SeriesKey {
  absl::string_view kernel, variant, device;
};

// Entries are only ever added, so that a reader needs one atomic load for each slot it looks at.
// Bounded: once three quarters full it takes no more, and such keys are made anew each time.
template <typename Value>
class SeriesCache {
 public:
  // Null if the key is not there.
  const Value* Find(const SeriesKey& key) const {
    for (std::size_t slot = SlotOf(key);; slot = (slot + 1) % kSlots) {
      const Entry* entry = slots_[slot].load(std::memory_order_acquire);
      if (entry == nullptr) return nullptr;
      if (entry->Is(key)) return &entry->value;
    }
  }

  // False if it is full. A key that is there keeps its value.
  bool Insert(const SeriesKey& key, Value value) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (Find(key) != nullptr) return true;
    if (entries_.size() >= kSlots / 4 * 3) return false;
    std::size_t slot = SlotOf(key);
    while (slots_[slot].load(std::memory_order_relaxed) != nullptr) slot = (slot + 1) % kSlots;
    entries_.push_back(std::make_unique<Entry>(
        Entry{std::string(key.kernel), std::string(key.variant), std::string(key.device), value}));
    slots_[slot].store(entries_.back().get(), std::memory_order_release);
    return true;
  }

 private:
  static constexpr std::size_t kSlots = 4096;
  struct Entry {
    std::string kernel, variant, device;
    Value value;
    bool Is(const SeriesKey& key) const {
      return kernel == key.kernel && variant == key.variant && device == key.device;
    }
  };
  // Two variants of a kernel may share one, and are then beside each other.
  static std::size_t SlotOf(const SeriesKey& key) {
    const char device = key.device.empty() ? '\0' : key.device.back();
    return absl::HashOf(key.kernel, key.variant.size(), device) % kSlots;
  }

  std::array<std::atomic<const Entry*>, kSlots> slots_{};
  Mutex mutex_;
  std::vector<std::unique_ptr<const Entry>> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_SERIES_CACHE_H_
