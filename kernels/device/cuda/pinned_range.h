// Host memory that is pinned piece by piece as copies first touch it: an arena is large, and a
// pinned page is one that can be used for nothing else.
#ifndef GRIDCLOCK_KERNELS_DEVICE_CUDA_PINNED_RANGE_H_
#define GRIDCLOCK_KERNELS_DEVICE_CUDA_PINNED_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace gridclock {

class PinnedRange {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

  struct Driver {
    std::function<absl::Status(std::span<std::byte>)> pin;
    std::function<void(std::byte*)> unpin;
  };
  PinnedRange(std::span<std::byte> range, Driver driver);
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

  bool Contains(const std::byte* data, std::size_t bytes) const;
  // Pins what is not yet pinned of [data, data + bytes), which it contains, and calls `piece` with
  // each part of it that lies in one piece, in order: a copy must not cross from one to the next.
  absl::Status ForEachPiece(
      const std::byte* data, std::size_t bytes,
      absl::FunctionRef<absl::Status(std::size_t offset, std::size_t bytes)> piece);

 private:
  std::span<std::byte> range_;
  Driver driver_;
  std::vector<bool> pinned_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_DEVICE_CUDA_PINNED_RANGE_H_
