// Host memory for the CPU device's own buffers, kept warm: fresh pages cost a fault each, which is
// more than most kernels take.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CPU_MEMORY_POOL_H_
#define GRIDCLOCK_KERNELS_DEVICE_CPU_MEMORY_POOL_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"

namespace gridclock {

class MemoryPool {
 public:
  struct Options {
    std::uint64_t limit = 0;                        // Bytes that may be in use together.
    std::uint64_t keep = std::uint64_t{256} << 20;  // Bytes that stay warm when they are freed.
  };
  explicit MemoryPool(Options options) : options_(options) {}
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Aligned to 64 bytes; the content is whatever was there. The pool must outlive the buffer.
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes);

 private:
  class Buffer;
  void* Take(std::uint64_t capacity);
  void GiveBack(void* data, std::uint64_t capacity);

  Options options_;
  std::uint64_t used_ = 0, kept_ = 0;
  std::multimap<std::uint64_t, void*> free_;  // By capacity.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CPU_MEMORY_POOL_H_
