// Device memory within a budget. What is freed is kept and given out again: taking it from the
// driver and giving it back waits for the whole device.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_POOL_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_POOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"

namespace gridclock {

class DevicePool {
 public:
  struct Options {
    // Bytes that may be in use together, of which the pool holds so many now. Asked each time
    // before the driver is: others take of the same memory and give back. Where it is exact, once
    // what it said is used up.
    std::function<std::uint64_t(std::uint64_t held)> limit;
    // The driver's: null where it has no memory left.
    std::function<void*(std::uint64_t bytes)> take;
    std::function<void(void* data)> give_back;
    // Each buffer is a block of just its size, which the driver has back with it.
    bool exact = false;
  };
  explicit DevicePool(Options options)
      : options_(std::move(options)), limit_(options_.limit(/*held=*/0)) {}
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // Aligned to 256 bytes at least; the content is whatever was there. Work that uses a freed buffer
  // may still be under way, so all work must go through one stream. RESOURCE_EXHAUSTED with the
  // numbers if the budget or the driver has not got so much. The pool must outlive the buffer.
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes);

  // Gives back to the driver what is kept, the largest first, but for so much.
  void Trim(std::uint64_t keep = 0);

  std::uint64_t used() const { return used_; }
  std::uint64_t kept() const { return kept_; }

 private:
  class Buffer;
  std::uint64_t CapacityOf(std::uint64_t bytes) const;
  bool Fits(std::uint64_t bytes) const;
  void* Reuse(std::uint64_t capacity, std::uint64_t* taken);
  void* TakeNew(std::uint64_t bytes);

  const Options options_;
  std::uint64_t limit_;
  std::uint64_t used_ = 0, kept_ = 0;
  std::multimap<std::uint64_t, void*> free_;  // By capacity.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_POOL_H_
