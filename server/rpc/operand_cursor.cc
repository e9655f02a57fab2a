#include "server/rpc/operand_cursor.h"

#include <algorithm>

namespace gridclock {
namespace {

std::uint64_t Aligned(std::uint64_t offset) {
  return (offset + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace

OperandCursor::OperandCursor(const OperandValue& value, const MemoryRange& memory)
    : value_(&value), start_(memory.offset), left_(WireBytes(value)) {
  if (left_ > 0) EnterTensor();
}

// Steps over tensors without elements; called only while bytes are left.
void OperandCursor::EnterTensor() {
  inside_ = 0;
  size_ = static_cast<std::uint64_t>(Bytes(value_->tensors[tensor_]));
  while (size_ == 0) size_ = static_cast<std::uint64_t>(Bytes(value_->tensors[++tensor_]));
}

MemoryRange OperandCursor::Next(std::uint64_t most) {
  const MemoryRange piece = {start_ + inside_, std::min(most, size_ - inside_)};
  inside_ += piece.size;
  position_ += piece.size;
  left_ -= piece.size;
  if (inside_ == size_ && left_ > 0) {
    start_ = Aligned(start_ + size_);
    ++tensor_;
    EnterTensor();
  }
  return piece;
}

}  // namespace gridclock
