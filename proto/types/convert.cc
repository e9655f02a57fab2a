#include "proto/types/convert.h"

#include <cstring>

namespace gridclock {
namespace {

template <typename T>
T Load(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * std::int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <typename T>
void Store(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<char*>(data) + index * std::int64_t{sizeof(T)}, &value, sizeof(T));
}

}  // namespace

double LoadAsDouble(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::kF64:
      return Load<double>(data, index);
    case DType::kF32:
      return Load<float>(data, index);
    case DType::kF16:
      return F16ToFloat(Load<std::uint16_t>(data, index));
    case DType::kBF16:
      return BF16ToFloat(Load<std::uint16_t>(data, index));
    case DType::kF8E4M3:
      return F8E4M3ToFloat(Load<std::uint8_t>(data, index));
    case DType::kF8E5M2:
      return F8E5M2ToFloat(Load<std::uint8_t>(data, index));
    case DType::kI64:
      return static_cast<double>(Load<std::int64_t>(data, index));
    case DType::kI32:
      return Load<std::int32_t>(data, index);
    case DType::kI16:
      return Load<std::int16_t>(data, index);
    case DType::kI8:
      return Load<std::int8_t>(data, index);
    case DType::kU64:
      return static_cast<double>(Load<std::uint64_t>(data, index));
    case DType::kU32:
      return Load<std::uint32_t>(data, index);
    case DType::kU16:
      return Load<std::uint16_t>(data, index);
    case DType::kU8:
      return Load<std::uint8_t>(data, index);
    case DType::kBool:
      return Load<std::uint8_t>(data, index) != 0 ? 1 : 0;
  }
  return 0;
}

void StoreFromDouble(DType dtype, void* data, std::int64_t index, double value) {
  switch (dtype) {
    case DType::kF64:
      return Store(data, index, value);
    case DType::kF32:
      return Store(data, index, static_cast<float>(value));
    case DType::kF16:
      return Store(data, index, F16FromDouble(value));
    case DType::kBF16:
      return Store(data, index, BF16FromDouble(value));
    case DType::kF8E4M3:
      return Store(data, index, F8E4M3FromDouble(value));
    case DType::kF8E5M2:
      return Store(data, index, F8E5M2FromDouble(value));
    case DType::kI64:
      return Store(data, index, IntegerFromDouble<std::int64_t>(value));
    case DType::kI32:
      return Store(data, index, IntegerFromDouble<std::int32_t>(value));
    case DType::kI16:
      return Store(data, index, IntegerFromDouble<std::int16_t>(value));
    case DType::kI8:
      return Store(data, index, IntegerFromDouble<std::int8_t>(value));
    case DType::kU64:
      return Store(data, index, IntegerFromDouble<std::uint64_t>(value));
    case DType::kU32:
      return Store(data, index, IntegerFromDouble<std::uint32_t>(value));
    case DType::kU16:
      return Store(data, index, IntegerFromDouble<std::uint16_t>(value));
    case DType::kU8:
      return Store(data, index, IntegerFromDouble<std::uint8_t>(value));
    case DType::kBool:
      return Store(data, index, std::uint8_t{value != 0});
  }
}

}  // namespace gridclock
