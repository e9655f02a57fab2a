#include "kernels/device/cuda/device_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kSmallStep = 512;
constexpr std::uint64_t kLargeStep = std::uint64_t{2} << 20;

std::uint64_t CapacityOf(std::uint64_t bytes) {
  const std::uint64_t step = bytes >= kLargeStep ? kLargeStep : kSmallStep;
  return (std::max<std::uint64_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

class DevicePool::Buffer final : public DeviceBuffer {
 public:
  Buffer(DevicePool& pool, void* data, std::uint64_t size, std::uint64_t capacity)
      : pool_(pool), data_(data), size_(size), capacity_(capacity) {}
  ~Buffer() override {
    pool_.used_ -= capacity_;
    pool_.kept_ += capacity_;
    pool_.free_.emplace(capacity_, data_);
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

absl::StatusOr<std::unique_ptr<DeviceBuffer>> DevicePool::Allocate(std::uint64_t bytes) {
  const auto refuse = [&](absl::string_view who) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("want ", bytes, " bytes of device memory, ",
                                                  options_.limit - std::min(used_, options_.limit),
                                                  " of ", options_.limit, " are free", who)),
        "DEVICE_MEMORY");
  };
  // Before it is rounded up: the sum must not wrap around.
  if (bytes > options_.limit) return refuse("");
  std::uint64_t capacity = CapacityOf(bytes);
  if (capacity > options_.limit - std::min(used_, options_.limit)) return refuse("");
  void* data = Reuse(capacity, &capacity);
  if (data == nullptr) {
    if (used_ + kept_ + capacity > options_.limit) Trim();
    data = options_.take(capacity);
  }
  if (data == nullptr) {
    Trim();
    data = options_.take(capacity);
  }
  if (data == nullptr) return refuse(" in the budget, but the driver has not got so much");
  used_ += capacity;
  return std::make_unique<Buffer>(*this, data, bytes, capacity);
}

// A kept block that is not more than twice too large; null if there is none.
void* DevicePool::Reuse(std::uint64_t capacity, std::uint64_t* taken) {
  const auto block = free_.lower_bound(capacity);
  if (block == free_.end() || block->first / 2 > capacity) return nullptr;
  if (block->first > options_.limit - std::min(used_, options_.limit)) return nullptr;
  // What is too large must not take from others what the budget would have given them.
  if (block->first > capacity && used_ + block->first > options_.limit / 2) return nullptr;
  *taken = block->first;
  void* data = block->second;
  kept_ -= block->first;
  free_.erase(block);
  return data;
}

void DevicePool::Trim() {
  for (const auto& [capacity, data] : free_) options_.give_back(data);
  free_.clear();
  kept_ = 0;
}

}  // namespace gridclock
