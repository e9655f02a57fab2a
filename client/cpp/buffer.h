// Bytes of a tensor on the client's side.
#ifndef GRIDCLOCK_CLIENT_CPP_BUFFER_H_
#define GRIDCLOCK_CLIENT_CPP_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "absl/status/statusor.h"

namespace gridclock {

// Owned, uninitialised, 64-byte aligned memory. Pages are touched when they are written, never
// before.
class Buffer {
 public:
  // RESOURCE_EXHAUSTED if there is not so much memory.
  static absl::StatusOr<Buffer> Create(std::uint64_t size);
  Buffer() = default;

  std::size_t size() const { return size_; }
  std::span<std::byte> span() { return {bytes_.get(), size_}; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> bytes_;
  std::size_t size_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_CLIENT_CPP_BUFFER_H_
