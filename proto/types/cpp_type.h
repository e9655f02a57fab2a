// What words know of a C++ type of a kernel's parameter.
#ifndef GRIDCLOCK_PROTO_TYPES_CPP_TYPE_H_
#define GRIDCLOCK_PROTO_TYPES_CPP_TYPE_H_

#include <optional>

#include "absl/strings/string_view.h"
#include "proto/types/dtype.h"

namespace gridclock {

// A number that words can give: as C++ and as words call it, and the attribute that holds it.
struct CppNumber {
  absl::string_view cpp, ctype, attribute;
};

// Of a type that is not known nothing is set.
struct CppType {
  const CppNumber* number = nullptr;
  bool pointer = false;
  bool to_const = false;
  bool to_pointer = false;
  std::optional<DType> element;  // What a pointer points to; none where that is not known.
};

// `type` as demanglers write it: "float const*".
CppType ReadCppType(absl::string_view type);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_CPP_TYPE_H_
