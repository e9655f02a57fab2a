#include "proto/types/job.h"

namespace gridclock {
namespace {

std::uint64_t Aligned(std::uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

}  // namespace

std::uint64_t TensorOffset(const OperandValue& value, std::size_t index) {
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < index; ++i) offset += Aligned(Bytes(value.tensors[i]));
  return offset;
}

std::uint64_t OperandBytes(const OperandValue& value) {
  return TensorOffset(value, value.tensors.size());
}

std::uint64_t WireBytes(const OperandValue& value) {
  std::uint64_t bytes = 0;
  for (const TensorSpec& tensor : value.tensors) bytes += Bytes(tensor);
  return bytes;
}

}  // namespace gridclock
