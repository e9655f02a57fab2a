#include "proto/types/bind_errors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace gridclock {

std::string Place::Name() const {
  return operand.is_list ? absl::StrCat("'", operand.name, "[", element, "]'")
                         : absl::StrCat("'", operand.name, "'");
}

std::string Place::Field(absl::string_view part) const {
  return absl::StrCat(kind, kind == "scratch" ? "." : "s.", operand.name,
                      operand.is_list ? absl::StrCat("[", element, "]") : "", ".", part);
}

absl::Status WrongField(absl::string_view field, absl::string_view message) {
  return WithField(absl::InvalidArgumentError(message), field);
}

std::string ShapesText(const Binding& binding) {
  constexpr std::size_t kMost = 4;
  const std::vector<OperandSpec>& specs = binding.spec->inputs;
  if (specs.empty() || specs.size() > kMost) return "";
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].is_list) return "";
    parts.push_back(absl::StrCat(specs[i].name, " is ", ToText(binding.inputs[i].tensors[0])));
  }
  return absl::StrCat(" (", absl::StrJoin(parts, ", "), ")");
}

}  // namespace gridclock
