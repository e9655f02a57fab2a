// What the two halves of Bind say when a call does not fit.
#ifndef GRIDCLOCK_PROTO_TYPES_BIND_ERRORS_H_
#define GRIDCLOCK_PROTO_TYPES_BIND_ERRORS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/types/binding.h"

namespace gridclock {

// One tensor of an operand, as messages name it.
struct Place {
  const OperandSpec& operand;
  std::size_t element = 0;
  absl::string_view kind = "input";  // Or "output", "scratch".

  std::string Name() const;  // 'a'; 'a[2]' of a list.
  // "inputs.a.shape", "outputs.c[2].dtype", "scratch.t.shape".
  std::string Field(absl::string_view part) const;
};

// INVALID_ARGUMENT with the field.
absl::Status WrongField(absl::string_view field, absl::string_view message);
// " (a is f32[2,3], b is f32[5,4])": both sides of a mismatch, if they are few and no lists.
std::string ShapesText(const Binding& binding);

// A call has a handful of names, so they are searched by a few comparisons.
template <typename T>
const T* FindBound(const std::vector<std::pair<std::string, T>>& entries, absl::string_view name) {
  for (const auto& [key, value] : entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_BIND_ERRORS_H_
