#include "kernels/device/cuda/device_pool.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kSmallStep = 512;
constexpr std::uint64_t kLargeStep = std::uint64_t{2} << 20;

}  // namespace

class DevicePool::Buffer final : public DeviceBuffer {
 public:
  Buffer(DevicePool& pool, void* data, std::uint64_t size, std::uint64_t capacity)
      : pool_(pool), data_(data), size_(size), capacity_(capacity) {}
  ~Buffer() override {
    pool_.used_ -= capacity_;
    pool_.kept_ += capacity_;
    pool_.free_.emplace(capacity_, data_);
    if (pool_.options_.exact) pool_.Trim();
  }
  void* data() const override { return data_; }
  std::uint64_t size() const override { return size_; }

 private:
  DevicePool& pool_;
  void* data_;
  std::uint64_t size_, capacity_;
};

DevicePool::~DevicePool() {
  Trim();
}

std::uint64_t DevicePool::CapacityOf(std::uint64_t bytes) const {
  const std::uint64_t step = options_.exact ? 1 : bytes >= kLargeStep ? kLargeStep : kSmallStep;
  return (std::max<std::uint64_t>(bytes, 1) + step - 1) / step * step;
}

// Compared before it is rounded up: the sum must not wrap around.
bool DevicePool::Fits(std::uint64_t bytes) const {
  return bytes <= limit_ && CapacityOf(bytes) <= limit_ - std::min(used_, limit_);
}

absl::StatusOr<std::unique_ptr<DeviceBuffer>> DevicePool::Allocate(std::uint64_t bytes) {
  std::uint64_t capacity = CapacityOf(bytes);
  void* data = Fits(bytes) ? Reuse(capacity, &capacity) : nullptr;
  if (data == nullptr) data = TakeNew(bytes);
  if (data == nullptr) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          "want ", bytes, " bytes of device memory, ",
                          limit_ - std::min(used_, limit_), " of ", limit_, " are free",
                          Fits(bytes) ? " in the budget, but the driver has not got so much" : "")),
                      "DEVICE_MEMORY");
  }
  used_ += capacity;
  return std::make_unique<Buffer>(*this, data, bytes, capacity);
}

// From the driver; null if the budget or the driver has not got so much.
void* DevicePool::TakeNew(std::uint64_t bytes) {
  // Of each buffer of thousands it would take longer than all else.
  if (!options_.exact || !Fits(bytes)) limit_ = options_.limit(used_ + kept_);
  if (!Fits(bytes)) return nullptr;
  const std::uint64_t capacity = CapacityOf(bytes);
  if (used_ + kept_ + capacity > limit_) Trim();
  void* const data = options_.take(capacity);
  if (data != nullptr) return data;
  Trim();
  return options_.take(capacity);
}

// A kept block that is not more than twice too large; null if there is none.
void* DevicePool::Reuse(std::uint64_t capacity, std::uint64_t* taken) {
  const auto block = free_.lower_bound(capacity);
  if (block == free_.end() || block->first / 2 > capacity) return nullptr;
  if (block->first > limit_ - std::min(used_, limit_)) return nullptr;
  // What is too large must not take from others what the budget would have given them.
  if (block->first > capacity && used_ + block->first > limit_ / 2) return nullptr;
  *taken = block->first;
  void* data = block->second;
  kept_ -= block->first;
  free_.erase(block);
  return data;
}

void DevicePool::Trim(std::uint64_t keep) {
  while (kept_ > keep) {
    const auto largest = std::prev(free_.end());
    options_.give_back(largest->second);
    kept_ -= largest->first;
    free_.erase(largest);
  }
}

}  // namespace gridclock
