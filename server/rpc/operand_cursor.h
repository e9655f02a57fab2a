// Where the bytes of an operand, as they go over the wire (tensors in order, without gaps), lie in
// the arena (each tensor at a 64-byte boundary).
#ifndef GRIDCLOCK_SERVER_RPC_OPERAND_CURSOR_H_
#define GRIDCLOCK_SERVER_RPC_OPERAND_CURSOR_H_

#include <cstdint>

#include "proto/types/job.h"

namespace gridclock {

// Walks once from the first byte to the last. `value` is borrowed.
class OperandCursor {
 public:
  OperandCursor(const OperandValue& value, const MemoryRange& memory);

  std::uint64_t position() const { return position_; }  // In wire bytes.
  std::uint64_t left() const { return left_; }
  // The next bytes that lie in one piece, at most `most` of them; left() and `most` MUST be over 0.
  MemoryRange Next(std::uint64_t most);

 private:
  void EnterTensor();

  const OperandValue* value_;
  std::size_t tensor_ = 0;
  std::uint64_t start_ = 0;   // Of the tensor in the arena.
  std::uint64_t size_ = 0;    // Of the tensor.
  std::uint64_t inside_ = 0;  // How much of it was handed out.
  std::uint64_t position_ = 0, left_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RPC_OPERAND_CURSOR_H_
