// Shapes and tensors as plain values: dense, row-major, little-endian; rank 0 and zero sizes legal.
#ifndef GRIDCLOCK_PROTO_TYPES_TENSOR_H_
#define GRIDCLOCK_PROTO_TYPES_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "proto/types/dtype.h"

namespace gridclock {

inline constexpr int kMaxRank = 8;

using Shape = absl::InlinedVector<std::int64_t, 4>;

struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// The product of the dimensions; INVALID_ARGUMENT if the rank is over kMaxRank, a dimension is
// negative or the product overflows. `[2, 3]` has 6, `[]` has 1.
absl::StatusOr<std::int64_t> CheckedElements(const Shape& shape);
// The same in bytes.
absl::StatusOr<std::int64_t> CheckedBytes(const TensorSpec& spec);

// For specs that were checked before: no overflow is possible.
std::int64_t Elements(const Shape& shape);
std::int64_t Bytes(const TensorSpec& spec);

// "[2,3]" and "f32[2,3]".
std::string ToText(const Shape& shape);
std::string ToText(const TensorSpec& spec);
// "f32[1024,1M]": K, M, G are powers of 1024 in shapes written by people.
absl::StatusOr<TensorSpec> ParseTensorSpec(absl::string_view text);

// What stands for one operand of a call: one tensor, or a list of them.
struct OperandValue {
  bool is_list = false;
  std::vector<TensorSpec> tensors;  // Exactly one unless is_list.
  friend bool operator==(const OperandValue&, const OperandValue&) = default;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_TENSOR_H_
