#include "proto/types/cpp_type.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

struct Element {
  absl::string_view cpp;
  DType dtype;
};
constexpr Element kElements[] = {{"double", DType::kF64},
                                 {"float", DType::kF32},
                                 {"__half", DType::kF16},
                                 {"__nv_bfloat16", DType::kBF16},
                                 {"__nv_fp8_e4m3", DType::kF8E4M3},
                                 {"__nv_fp8_e5m2", DType::kF8E5M2},
                                 {"long", DType::kI64},
                                 {"long long", DType::kI64},
                                 {"int", DType::kI32},
                                 {"short", DType::kI16},
                                 {"signed char", DType::kI8},
                                 {"unsigned long", DType::kU64},
                                 {"unsigned long long", DType::kU64},
                                 {"unsigned int", DType::kU32},
                                 {"unsigned short", DType::kU16},
                                 {"unsigned char", DType::kU8},
                                 {"bool", DType::kBool}};

constexpr CppNumber kNumbers[] = {{"int", "int", "i64"},
                                  {"unsigned int", "unsigned", "i64"},
                                  {"long", "int64", "i64"},
                                  {"long long", "int64", "i64"},
                                  {"unsigned long", "uint64", "i64"},
                                  {"unsigned long long", "uint64", "i64"},
                                  {"float", "float", "f64"},
                                  {"double", "double", "f64"},
                                  {"bool", "bool", "bool"}};

std::optional<DType> ElementOf(absl::string_view cpp) {
  for (const Element& element : kElements) {
    if (element.cpp == cpp) return element.dtype;
  }
  return std::nullopt;
}

}  // namespace

CppType ReadCppType(absl::string_view type) {
  CppType out;
  for (const CppNumber& number : kNumbers) {
    if (number.cpp == type) out.number = &number;
  }
  out.pointer = absl::ConsumeSuffix(&type, "*");
  if (!out.pointer) return out;
  out.to_const = absl::ConsumeSuffix(&type, " const");
  out.to_pointer = absl::EndsWith(type, "*");
  out.element = ElementOf(type);
  return out;
}

}  // namespace gridclock
