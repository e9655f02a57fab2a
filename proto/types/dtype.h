// The element types of tensors.
#ifndef GRIDCLOCK_PROTO_TYPES_DTYPE_H_
#define GRIDCLOCK_PROTO_TYPES_DTYPE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace gridclock {

// The numbers are those of gridclock.v1.DType.
enum class DType : std::uint8_t {
  kF64 = 1,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool
};
inline constexpr int kDTypeCount = 15;
// Every dtype, in the order of their numbers.
const std::array<DType, kDTypeCount>& AllDTypes();

// Bytes of one element.
std::int64_t SizeOf(DType dtype);
// "f32".
absl::string_view Name(DType dtype);
std::optional<DType> ParseDType(absl::string_view name);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_DTYPE_H_
