// What an expression comes to, told from the words alone, before any call.
#ifndef GRIDCLOCK_PROTO_TYPES_EXPRESSION_CHECK_H_
#define GRIDCLOCK_PROTO_TYPES_EXPRESSION_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/types/kernel_spec.h"

namespace gridclock {

// In the order of Value's alternatives.
enum class ValueKind : std::uint8_t { kWhole, kDouble, kTruth, kDType, kWord };
const char* Spell(ValueKind kind);

// The names that an expression may use where it stands.
struct KnownNames {
  std::vector<std::string> dims, runs, dtypes;
  std::vector<const OperandSpec*> operands;                // Borrowed.
  const std::vector<AttributeSpec>* attributes = nullptr;  // Borrowed; with the words of enums.
  bool sm = false;                                         // The device's capability, in a `when`.
};

bool Contains(const std::vector<std::string>& names, const std::string& name);
const AttributeSpec* FindAttribute(const std::vector<AttributeSpec>& attributes,
                                   const std::string& name);

// INVALID_ARGUMENT for unbound names and operands of the wrong kind, quoting the expression.
absl::StatusOr<ValueKind> KindOf(const Expr& expr, const KnownNames& names);
absl::Status CheckArguments(const Expr& call, std::size_t want);
absl::Status CheckKind(const Expr& expr, const KnownNames& names, ValueKind want);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_EXPRESSION_CHECK_H_
