#include "kernels/device/cpu/memory_pool.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

std::uint64_t RoundUp(std::uint64_t bytes, std::uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

void* AllocateFresh(std::uint64_t capacity) {
  const bool huge = capacity >= kHugePage;
  void* data = std::aligned_alloc(huge ? kHugePage : kAlignment, capacity);
  // Advice: without it the kernels still run, with more misses of the TLB.
  if (data != nullptr && huge) madvise(data, capacity, MADV_HUGEPAGE);
  return data;
}

}  // namespace

class MemoryPool::Buffer final : public DeviceBuffer {
 public:
  Buffer(MemoryPool& pool, void* data, std::uint64_t size, std::uint64_t capacity)
      : pool_(pool), data_(data), size_(size), capacity_(capacity) {}
  ~Buffer() override { pool_.GiveBack(data_, capacity_); }
  void* data() const override { return data_; }
  std::uint64_t size() const override { return size_; }

 private:
  MemoryPool& pool_;
  void* data_;
  std::uint64_t size_, capacity_;
};

MemoryPool::~MemoryPool() {
  for (const auto& [capacity, data] : free_) std::free(data);
}

absl::StatusOr<std::unique_ptr<DeviceBuffer>> MemoryPool::Allocate(std::uint64_t bytes) {
  const std::uint64_t free_bytes = options_.limit - std::min(used_, options_.limit);
  if (bytes > free_bytes) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("want ", bytes, " bytes of device memory, ",
                                                  free_bytes, " of ", options_.limit, " are free")),
        "DEVICE_MEMORY");
  }
  const std::uint64_t capacity =
      RoundUp(std::max<std::uint64_t>(bytes, 1), bytes >= kHugePage ? kHugePage : kAlignment);
  const auto warm = free_.lower_bound(capacity);
  const bool fits = warm != free_.end() && warm->first / 2 <= capacity;
  const std::uint64_t taken = fits ? warm->first : capacity;
  void* data = Take(taken);
  if (data == nullptr) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("the system refused ", bytes, " bytes")),
        "DEVICE_MEMORY");
  }
  used_ += taken;
  return std::make_unique<Buffer>(*this, data, bytes, taken);
}

void* MemoryPool::Take(std::uint64_t capacity) {
  const auto warm = free_.find(capacity);
  if (warm == free_.end()) return AllocateFresh(capacity);
  void* data = warm->second;
  free_.erase(warm);
  kept_ -= capacity;
  return data;
}

void MemoryPool::GiveBack(void* data, std::uint64_t capacity) {
  used_ -= capacity;
  if (kept_ + capacity > options_.keep) return std::free(data);
  free_.emplace(capacity, data);
  kept_ += capacity;
}

}  // namespace gridclock
