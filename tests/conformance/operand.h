// The tensors of one operand on the device: in one buffer, each between guards, or each in a buffer
// of its own.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_OPERAND_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_OPERAND_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/api/registry.h"
#include "kernels/device/device.h"

namespace gridclock {

// How the tensors of an operand lie.
struct Layout {
  bool misaligned = false;  // They begin one element past the alignment of the device.
  // Each ends where a buffer of its own ends, so that a tool sees what is read beyond it. Without
  // guards: the tool sees what is written there too.
  bool exact = false;
};

class Operand {
 public:
  // `value` outlives it.
  static absl::StatusOr<Operand> Create(Device& device, const OperandValue& value, Layout layout);

  OperandView view() const;
  std::size_t count() const { return places_.size(); }
  std::size_t bytes(std::size_t i) const { return places_[i].bytes; }

  absl::Status Fill(std::byte value);
  absl::Status Put(const std::vector<std::vector<std::byte>>& tensors);
  // The bytes of `pattern` again and again, to the end of each tensor. Copied on the device.
  absl::Status PutRepeated(std::span<const std::byte> pattern);
  absl::StatusOr<std::vector<std::vector<std::byte>>> Get() const;
  // `size` bytes of the first tensor from byte `begin` on.
  absl::StatusOr<std::vector<std::byte>> GetPart(std::size_t begin, std::size_t size) const;
  bool GuardsHold() const;  // True where there are none.

 private:
  struct Place {
    std::size_t begin, bytes;  // In its buffer.
    std::size_t end() const { return begin + bytes; }
  };
  Operand(Device& device, const OperandValue& value) : device_(&device), value_(&value) {}
  absl::Status PlaceBetweenGuards(bool misaligned);
  absl::Status PlaceEach(bool misaligned);
  std::byte* At(std::size_t begin) const {
    return static_cast<std::byte*>(guarded_->data()) + begin;
  }
  // All of the buffer at once if it is small: many small copies take long.
  bool IsSmall() const { return guarded_ && guarded_->size() <= std::size_t{64} << 20; }
  // The same where guards alone are wanted, of which there is one more than tensors.
  bool IsMostlyGuards() const {
    return guarded_->size() <= (count() + 1) * (std::size_t{32} << 10);
  }
  absl::StatusOr<std::vector<std::byte>> All() const;
  bool IsGuard(std::size_t begin, std::size_t end) const;

  Device* device_;
  const OperandValue* value_;
  OperandView view_;
  std::vector<Place> places_;
  std::unique_ptr<DeviceBuffer> guarded_;            // Null where each has its own.
  std::vector<std::unique_ptr<DeviceBuffer>> each_;  // Empty where there are guards.
};

std::vector<OperandView> Views(const std::vector<Operand>& operands);

// What scratch the variant wants for a call.
absl::StatusOr<std::vector<OperandValue>> ScratchOf(const RegisteredKernel& kernel,
                                                    const Variant& variant, const Binding& binding);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_OPERAND_H_
