// Host memory through which bytes come from a device piece by piece, so that what does not
// travel to a client needs no more of it than this, however large it is.
#ifndef GRIDCLOCK_KERNELS_WORKER_STAGING_H_
#define GRIDCLOCK_KERNELS_WORKER_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device/device.h"

namespace gridclock {

class Staging {
 public:
  // A multiple of every dtype's size.
  static constexpr std::size_t kPiece = std::size_t{16} << 20;

  explicit Staging(Device& device) : device_(device) {}

  // Calls take(piece) for piece after piece of what lies at `from` on the device. Synchronous.
  absl::Status Receive(const std::byte* from, std::uint64_t bytes,
                       absl::FunctionRef<void(std::span<const std::byte> piece)> take);

 private:
  // RESOURCE_EXHAUSTED (MEMORY_FULL) if the host has no memory for it.
  absl::Status Prepare();
  std::span<std::byte> Half(std::uint64_t index, std::uint64_t bytes) const {
    return {memory_.get() + (index % 2) * kPiece, static_cast<std::size_t>(bytes)};
  }

  struct Free {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{4096}); }
  };

  Device& device_;
  std::unique_ptr<std::byte[], Free> memory_;  // Two pieces, from the first use on.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_STAGING_H_
