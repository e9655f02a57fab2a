// Inputs on their way to the device before their order is here: while a client still sends the end
// of a large one, its beginning is copied.
#ifndef GRIDCLOCK_KERNELS_WORKER_EARLY_COPIES_H_
#define GRIDCLOCK_KERNELS_WORKER_EARLY_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/device/device.h"
#include "proto/codec/worker.h"

namespace gridclock {

// A cache: the bytes stay in the arena, so each copy may be dropped at any time, and an order that
// does not find its own copies all by itself. Copies go through the stream that everything on the
// device goes through: memory that is dropped while one is under way is used again behind it.
class EarlyCopies {
 public:
  // What is under way at a time: an order that comes meanwhile waits for no more than this.
  static constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;

  EarlyCopies(Device& device, std::span<const std::byte> arena) : device_(device), arena_(arena) {}

  // Notes what may be copied, and asks nothing of the device. False where that works in the arena.
  bool Note(const WorkerArrival& arrival);
  // There is something to copy.
  bool pending() const;
  // Copies the next piece of it once the last one is there; asynchronous. What the device has no
  // memory for is forgotten. An error means that the device is lost.
  absl::Status CopyPiece();
  // Waits for the piece under way, unless the order has copies here: then that is its own matter.
  absl::Status SettleBefore(const WorkerOrder& order);

  // The memory with the first `bytes` of this input, from now on the caller's; null: there is none.
  // They may still be under way.
  struct Copied {
    std::unique_ptr<DeviceBuffer> buffer;
    std::uint64_t bytes = 0;
  };
  Copied Take(const WorkerOrder& order, std::size_t input);
  // The order ended, or will not come.
  void Forget(std::uint64_t id);
  // Gives all memory back. False if there was none.
  bool Clear();

 private:
  struct Copy {
    WorkerArrival arrival;
    std::unique_ptr<DeviceBuffer> buffer;  // From the first piece on.
    std::uint64_t bytes = 0;               // Copied, or under way.
  };

  Copy* Behind();
  bool HasRoomFor(std::uint64_t bytes) const;
  absl::Status CopyPieceOf(Copy& copy);
  absl::Status Settle();

  Device& device_;
  const std::span<const std::byte> arena_;
  std::vector<Copy> copies_;
  bool under_way_ = false;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_EARLY_COPIES_H_
