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
    std::uint64_t limit = 0;  // Bytes that may be in use together.
    // The driver's: null where it has no memory left.
    std::function<void*(std::uint64_t bytes)> take;
    std::function<void(void* data)> give_back;
  };
  explicit DevicePool(Options options) : options_(std::move(options)) {}
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // Aligned to 256 bytes at least; the content is whatever was there. Work that uses a freed buffer
  // may still be under way, so all work must go through one stream. RESOURCE_EXHAUSTED with the
  // numbers if the budget or the driver has not got so much. The pool must outlive the buffer.
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes);

  // Gives back to the driver what is kept.
  void Trim();

  std::uint64_t used() const { return used_; }
  std::uint64_t kept() const { return kept_; }

 private:
  class Buffer;
  void* Reuse(std::uint64_t capacity, std::uint64_t* taken);

  Options options_;
  std::uint64_t used_ = 0, kept_ = 0;
  std::multimap<std::uint64_t, void*> free_;  // By capacity.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_DEVICE_POOL_H_
