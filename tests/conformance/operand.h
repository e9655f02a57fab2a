// The tensors of one operand on the device, in one buffer, each between guards.
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

class Operand {
 public:
  // `value` outlives it. Misaligned tensors begin one element past the alignment of the device.
  static absl::StatusOr<Operand> Create(Device& device, const OperandValue& value, bool misaligned);

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
  bool GuardsHold() const;

 private:
  struct Place {
    std::size_t begin, bytes;  // In the buffer.
    std::size_t end() const { return begin + bytes; }
  };
  Operand(Device& device, const OperandValue& value) : device_(&device), value_(&value) {}
  std::byte* At(std::size_t begin) const {
    return static_cast<std::byte*>(buffer_->data()) + begin;
  }
  // All of the buffer at once if it is small: many small copies take long.
  bool IsSmall() const { return buffer_->size() <= std::size_t{64} << 20; }
  // The same where guards alone are wanted, of which there is one more than tensors.
  bool IsMostlyGuards() const { return buffer_->size() <= (count() + 1) * (std::size_t{32} << 10); }
  absl::StatusOr<std::vector<std::byte>> All() const;
  bool IsGuard(std::size_t begin, std::size_t end) const;

  Device* device_;
  const OperandValue* value_;
  OperandView view_;
  std::vector<Place> places_;
  std::unique_ptr<DeviceBuffer> buffer_;
};

std::vector<OperandView> Views(const std::vector<Operand>& operands);

// What scratch the variant wants for a call.
absl::StatusOr<std::vector<OperandValue>> ScratchOf(const RegisteredKernel& kernel,
                                                    const Variant& variant, const Binding& binding);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_OPERAND_H_
