// The tensors of one order where its kernel works on them: in the arena on a device that uses host
// memory, else in buffers of the device, into which inputs are copied and out of which outputs are.
#ifndef GRIDCLOCK_KERNELS_WORKER_OPERANDS_H_
#define GRIDCLOCK_KERNELS_WORKER_OPERANDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device/device.h"
#include "kernels/worker/call_cache.h"
#include "kernels/worker/early_copies.h"
#include "kernels/worker/staging.h"
#include "proto/codec/worker.h"

namespace gridclock {

class Operands {
 public:
  // All are borrowed.
  struct Parts {
    Device& device;
    Staging& staging;
    EarlyCopies& early;
    std::span<std::byte> arena;
    const WorkerOrder& order;
    BoundCall& call;  // Its views are pointed at the operands.
  };
  explicit Operands(const Parts& parts)
      : parts_(parts),
        own_memory_(!parts.device.uses_host_memory()),
        margin_(parts.order.checked_launches == 0 ? 0 : kCheckMargin) {}

  // INVALID_ARGUMENT if the order gives an operand no place; RESOURCE_EXHAUSTED (MEMORY_FULL) with
  // the numbers if the device has too little memory.
  absl::Status Place();
  // Inputs that were sent are copied to the device, as far as they are not there; the others are
  // made there. With a `seed_change` other than 0 these are other values than the submitted ones.
  absl::Status Fill(std::uint64_t seed_change);
  // Inputs that the kernel overwrites are kept as submitted, to be brought back by Restore.
  absl::Status Save();
  // The submitted values, also where Fill made others.
  absl::Status Refresh();
  // Asynchronous.
  absl::Status Restore();
  absl::Status Poison();
  // Scratch becomes what nobody expects, not what an earlier launch left there. Asynchronous.
  absl::Status PoisonScratch();
  // Of an order with checked launches: all that the server wrote for one, to where the kernel
  // works; and back, margins included.
  absl::Status TakeAll();
  absl::Status GiveAll();
  // Outputs that are returned are copied to the arena.
  absl::Status Return();
  absl::StatusOr<std::uint64_t> Checksum(std::size_t output);

  // The inputs as submitted, also where an output was written over one: in the arena if they were
  // sent, else where the kernel works.
  std::vector<OperandView> Submitted() const;
  // The kernel works in memory of the device, not in the arena.
  bool own_memory() const { return own_memory_; }
  // Of the device: operands, scratch, saved inputs.
  std::uint64_t bytes() const { return bytes_; }

 private:
  // An input that the kernel overwrites, and the values that were submitted.
  struct Saved {
    std::size_t input = 0;
    std::unique_ptr<DeviceBuffer> buffer;
  };

  std::byte* At(const MemoryRange& range) const { return parts_.arena.data() + range.offset; }
  absl::StatusOr<std::byte*> PlaceOne(const WorkerOperand& operand, absl::string_view what,
                                      std::size_t index);
  absl::StatusOr<std::byte*> PlaceInput(std::size_t index);
  absl::Status PlaceScratch();
  absl::StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(std::uint64_t bytes,
                                                         absl::string_view what);
  absl::Status CopyInputs();
  // Each operand with its margins, once: here, and where the kernel works.
  struct Whole {
    std::span<std::byte> here;
    std::byte* there = nullptr;
  };
  std::vector<Whole> Wholes() const;
  absl::Status MakeValues(std::uint64_t seed_change);

  const Parts parts_;
  const bool own_memory_;
  const std::uint64_t margin_;                // Before and behind each operand.
  std::vector<std::byte*> inputs_, outputs_;  // Where the kernel works.
  std::vector<std::uint64_t> early_bytes_;    // Of each input: copied before the order came.
  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::vector<Saved> saved_;
  std::uint64_t bytes_ = 0;
  // How often it is worth looking whether the process that served this device before gave back what
  // it kept, which it does once it is idle.
  int looks_left_ = 25;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_WORKER_OPERANDS_H_
