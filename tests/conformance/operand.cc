#include "tests/conformance/operand.h"

#include <algorithm>

namespace gridclock {
namespace {

constexpr std::size_t kGuard = 256;  // Bytes at least before and after each tensor.
constexpr std::byte kGuardByte{0x5C};

bool AreGuards(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kGuardByte; });
}

std::size_t Shift(const TensorSpec& tensor, bool misaligned) {
  return misaligned ? static_cast<std::size_t>(SizeOf(tensor.dtype)) : 0;
}

}  // namespace

absl::StatusOr<Operand> Operand::Create(Device& device, const OperandValue& value, Layout layout) {
  Operand operand(device, value);
  GC_RETURN_IF_ERROR(layout.exact ? operand.PlaceEach(layout.misaligned)
                                  : operand.PlaceBetweenGuards(layout.misaligned));
  return operand;
}

absl::Status Operand::PlaceBetweenGuards(bool misaligned) {
  std::size_t size = 0;
  for (const TensorSpec& tensor : value_->tensors) {
    const std::size_t begin = (size + 2 * kGuard - 1) / kGuard * kGuard + Shift(tensor, misaligned);
    places_.push_back({begin, static_cast<std::size_t>(Bytes(tensor))});
    size = places_.back().end();
  }
  GC_ASSIGN_OR_RETURN(guarded_, device_->Allocate(size + kGuard));
  GC_RETURN_IF_ERROR(device_->Fill(At(0), kGuardByte, guarded_->size()));
  for (const Place& place : places_) view_.data.push_back(At(place.begin));
  return absl::OkStatus();
}

absl::Status Operand::PlaceEach(bool misaligned) {
  for (const TensorSpec& tensor : value_->tensors) {
    const Place& place = places_.emplace_back(
        Place{Shift(tensor, misaligned), static_cast<std::size_t>(Bytes(tensor))});
    GC_ASSIGN_OR_RETURN(auto buffer, device_->Allocate(place.end()));
    view_.data.push_back(static_cast<std::byte*>(buffer->data()) + place.begin);
    each_.push_back(std::move(buffer));
  }
  return absl::OkStatus();
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
    auto* const begin = static_cast<std::byte*>(view_.data[i]);
    std::size_t filled = std::min(pattern.size(), bytes(i));
    GC_RETURN_IF_ERROR(device_->CopyIn(begin, pattern.first(filled)));
    while (filled < bytes(i)) {
      const std::size_t more = std::min(filled, bytes(i) - filled);
      GC_RETURN_IF_ERROR(device_->Copy(begin + filled, begin, more));
      filled += more;
    }
  }
  return device_->Synchronize();
}

absl::StatusOr<std::vector<std::byte>> Operand::All() const {
  std::vector<std::byte> all(guarded_->size());
  GC_RETURN_IF_ERROR(device_->CopyOut(all, At(0)));
  GC_RETURN_IF_ERROR(device_->Synchronize());
  return all;
}

absl::StatusOr<std::vector<std::vector<std::byte>>> Operand::Get() const {
  std::vector<std::vector<std::byte>> tensors;
  if (IsSmall()) {
    GC_ASSIGN_OR_RETURN(const std::vector<std::byte> all, All());
    for (const Place& place : places_) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(place.begin);
      tensors.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(place.bytes));
    }
    return tensors;
  }
  for (std::size_t i = 0; i < count(); ++i) {
    tensors.emplace_back(bytes(i));
    GC_RETURN_IF_ERROR(device_->CopyOut(tensors.back(), view_.data[i]));
  }
  GC_RETURN_IF_ERROR(device_->Synchronize());
  return tensors;
}

absl::StatusOr<std::vector<std::byte>> Operand::GetPart(std::size_t begin, std::size_t size) const {
  std::vector<std::byte> part(size);
  GC_RETURN_IF_ERROR(device_->CopyOut(part, static_cast<const std::byte*>(view_.data[0]) + begin));
  GC_RETURN_IF_ERROR(device_->Synchronize());
  return part;
}

bool Operand::GuardsHold() const {
  if (guarded_ == nullptr) return true;
  const auto all = IsMostlyGuards() ? All() : std::vector<std::byte>();
  if (!all.ok()) return false;
  std::size_t guard = 0;  // Where the one at hand begins.
  const auto holds = [&](std::size_t end) {
    return all->empty() ? IsGuard(guard, end)
                        : AreGuards(std::span(*all).subspan(guard, end - guard));
  };
  for (const Place& place : places_) {
    if (!holds(place.begin)) return false;
    guard = place.end();
  }
  return holds(guarded_->size());
}

bool Operand::IsGuard(std::size_t begin, std::size_t end) const {
  std::vector<std::byte> guard(end - begin);
  return device_->CopyOut(guard, At(begin)).ok() && device_->Synchronize().ok() && AreGuards(guard);
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
