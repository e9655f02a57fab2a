#include "tests/conformance/operand.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr std::size_t kGuard = 256;  // Bytes before and after each tensor.
constexpr std::byte kGuardByte{0x5C};

}  // namespace

absl::StatusOr<Operand> Operand::Create(Device& device, const OperandValue& value,
                                        bool misaligned) {
  Operand operand(device, value);
  for (const TensorSpec& tensor : value.tensors) {
    const auto bytes = static_cast<std::size_t>(Bytes(tensor));
    const std::size_t shift =
        kGuard + (misaligned ? static_cast<std::size_t>(SizeOf(tensor.dtype)) : 0);
    GC_ASSIGN_OR_RETURN(auto buffer, device.Allocate(shift + bytes + kGuard));
    GC_RETURN_IF_ERROR(device.Fill(buffer->data(), kGuardByte, buffer->size()));
    operand.view_.data.push_back(static_cast<char*>(buffer->data()) + shift);
    operand.places_.push_back({shift, bytes});
    operand.buffers_.push_back(std::move(buffer));
  }
  return operand;
}

OperandView Operand::view() const {
  OperandView view = view_;
  view.value = value_;
  return view;
}

absl::Status Operand::Fill(std::byte value) {
  for (std::size_t i = 0; i < count(); ++i) {
    GC_RETURN_IF_ERROR(device_->Fill(view_.data[i], value, bytes(i)));
  }
  return absl::OkStatus();
}

absl::Status Operand::Put(const std::vector<std::vector<std::byte>>& tensors) {
  for (std::size_t i = 0; i < count(); ++i) {
    GC_RETURN_IF_ERROR(device_->CopyIn(view_.data[i], tensors[i]));
  }
  return device_->Synchronize();
}

absl::Status Operand::PutRepeated(std::span<const std::byte> pattern) {
  for (std::size_t i = 0; i < count(); ++i) {
    auto* data = static_cast<std::byte*>(view_.data[i]);
    std::size_t filled = std::min(pattern.size(), bytes(i));
    GC_RETURN_IF_ERROR(device_->CopyIn(data, pattern.first(filled)));
    while (filled < bytes(i)) {
      const std::size_t more = std::min(filled, bytes(i) - filled);
      GC_RETURN_IF_ERROR(device_->Copy(data + filled, data, more));
      filled += more;
    }
  }
  return device_->Synchronize();
}

absl::StatusOr<std::vector<std::vector<std::byte>>> Operand::Get() const {
  std::vector<std::vector<std::byte>> tensors;
  for (std::size_t i = 0; i < count(); ++i) {
    tensors.emplace_back(bytes(i));
    GC_RETURN_IF_ERROR(device_->CopyOut(tensors.back(), view_.data[i]));
  }
  GC_RETURN_IF_ERROR(device_->Synchronize());
  return tensors;
}

absl::StatusOr<std::vector<std::byte>> Operand::GetPart(std::size_t begin, std::size_t size) const {
  std::vector<std::byte> part(size);
  GC_RETURN_IF_ERROR(device_->CopyOut(part, static_cast<std::byte*>(view_.data[0]) + begin));
  GC_RETURN_IF_ERROR(device_->Synchronize());
  return part;
}

bool Operand::GuardsHold() const {
  for (std::size_t i = 0; i < count(); ++i) {
    const std::size_t end = places_[i].shift + places_[i].bytes;
    if (!IsGuard(i, 0, places_[i].shift)) return false;
    if (!IsGuard(i, end, buffers_[i]->size())) return false;
  }
  return true;
}

bool Operand::IsGuard(std::size_t buffer, std::size_t begin, std::size_t end) const {
  std::vector<std::byte> guard(end - begin);
  const auto* from = static_cast<std::byte*>(buffers_[buffer]->data()) + begin;
  if (!device_->CopyOut(guard, from).ok() || !device_->Synchronize().ok()) return false;
  return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == kGuardByte; });
}

std::vector<OperandView> Views(const std::vector<Operand>& operands) {
  std::vector<OperandView> views;
  views.reserve(operands.size());
  for (const Operand& operand : operands) views.push_back(operand.view());
  return views;
}

absl::StatusOr<std::vector<OperandValue>> ScratchOf(const RegisteredKernel& kernel,
                                                    const Variant& variant,
                                                    const Binding& binding) {
  if (variant.clauses.empty()) return std::vector<OperandValue>();
  auto clauses = ParseClauses(variant.clauses);
  if (!clauses.ok()) return Annotate(clauses.status(), kernel.spec.name);
  return BindScratch(*clauses, binding);
}

}  // namespace gridclock
