#include "proto/types/dtype.h"

#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

struct Entry {
  DType dtype;
  const char* name;
  std::int64_t size;
};
using enum DType;
constexpr Entry kEntries[kDTypeCount] = {
    {kF64, "f64", 8},       {kF32, "f32", 4},       {kF16, "f16", 2},  {kBF16, "bf16", 2},
    {kF8E4M3, "f8e4m3", 1}, {kF8E5M2, "f8e5m2", 1}, {kI64, "i64", 8},  {kI32, "i32", 4},
    {kI16, "i16", 2},       {kI8, "i8", 1},         {kU64, "u64", 8},  {kU32, "u32", 4},
    {kU16, "u16", 2},       {kU8, "u8", 1},         {kBool, "bool", 1}};

const Entry& EntryOf(DType dtype) {
  return kEntries[static_cast<int>(dtype) - 1];
}

}  // namespace

const std::array<DType, kDTypeCount>& AllDTypes() {
  static constexpr auto kAll = [] {
    std::array<DType, kDTypeCount> all{};
    for (int i = 0; i < kDTypeCount; ++i) all[i] = kEntries[i].dtype;
    return all;
  }();
  return kAll;
}

std::int64_t SizeOf(DType dtype) {
  return EntryOf(dtype).size;
}

absl::string_view Name(DType dtype) {
  return EntryOf(dtype).name;
}

std::optional<DType> ParseDType(absl::string_view name) {
  for (const Entry& entry : kEntries) {
    if (name == entry.name) return entry.dtype;
  }
  return std::nullopt;
}

}  // namespace gridclock
