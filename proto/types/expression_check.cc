#include "proto/types/expression_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/lexer.h"

namespace gridclock {
namespace {

using Op = Expr::Op;
using enum ValueKind;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::StatusOr<ValueKind> Check(const Expr& expr, const KnownNames& names);

absl::Status Want(const Expr& expr, const KnownNames& names, ValueKind want) {
  GC_ASSIGN_OR_RETURN(const ValueKind got, Check(expr, names));
  if (got == want) return absl::OkStatus();
  return Wrong(
      absl::StrCat("want ", Spell(want), ", got ", Spell(got), " in '", ToText(expr), "'"));
}

absl::Status WantAll(const Expr& expr, const KnownNames& names, ValueKind want) {
  for (const Expr& arg : expr.args) GC_RETURN_IF_ERROR(Want(arg, names, want));
  return absl::OkStatus();
}

ValueKind KindOfType(AttributeSpec::Type type) {
  switch (type) {
    case AttributeSpec::Type::kI64:
      return kWhole;
    case AttributeSpec::Type::kF64:
      return kDouble;
    case AttributeSpec::Type::kBool:
      return kTruth;
    case AttributeSpec::Type::kDType:
      return kDType;
    case AttributeSpec::Type::kEnum:
      break;
  }
  return kWord;
}

bool IsWord(const KnownNames& names, const std::string& name) {
  return std::any_of(
      names.attributes->begin(), names.attributes->end(),
      [&](const AttributeSpec& attribute) { return Contains(attribute.words, name); });
}

absl::StatusOr<ValueKind> CheckName(const std::string& name, const KnownNames& names) {
  if (Contains(names.dims, name)) return kWhole;
  if (Contains(names.dtypes, name)) return kDType;
  if (const auto* attribute = FindAttribute(*names.attributes, name)) {
    return KindOfType(attribute->type);
  }
  if (IsWord(names, name)) return kWord;
  if (names.sm && name == "sm") return kWhole;
  return Wrong(absl::StrCat("unbound name '", name, "'"));
}

absl::Status CheckMeasured(const Expr& call, const KnownNames& names) {
  const bool is_dim = call.name == "dim";
  GC_RETURN_IF_ERROR(CheckArguments(call, is_dim ? 2 : 1));
  if (is_dim) GC_RETURN_IF_ERROR(Want(call.args[1], names, kWhole));
  const std::string& name = call.args[0].name;
  if (call.args[0].op != Op::kName) {
    return Wrong(absl::StrCat(call.name, " wants the name of an operand"));
  }
  const bool of_shape = call.name == "rank" || call.name == "dim";
  if (Contains(names.runs, name)) {
    if (of_shape || call.name == "numel") return absl::OkStatus();
    return Wrong(absl::StrCat(call.name, " wants an operand, '", name, "' is a run"));
  }
  for (const OperandSpec* operand : names.operands) {
    if (operand->name != name) continue;
    if (!of_shape || !operand->is_list) return absl::OkStatus();
    return Wrong(absl::StrCat(call.name, " wants one tensor, '", name, "' is a list"));
  }
  return Wrong(absl::StrCat("unbound name '", name, "'"));
}

absl::StatusOr<ValueKind> CheckCall(const Expr& call, const KnownNames& names) {
  if (call.name == "min" || call.name == "max") {
    GC_RETURN_IF_ERROR(WantAll(call, names, kWhole));
  } else if (call.name == "ceil_div" || call.name == "next_pow2") {
    GC_RETURN_IF_ERROR(CheckArguments(call, call.name == "ceil_div" ? 2 : 1));
    GC_RETURN_IF_ERROR(WantAll(call, names, kWhole));
  } else if (call.name == "sizeof") {
    GC_RETURN_IF_ERROR(CheckArguments(call, 1));
    GC_RETURN_IF_ERROR(Want(call.args[0], names, kDType));
  } else {
    GC_RETURN_IF_ERROR(CheckMeasured(call, names));
  }
  return kWhole;
}

absl::StatusOr<ValueKind> CheckComparison(const Expr& expr, const KnownNames& names) {
  GC_ASSIGN_OR_RETURN(const ValueKind a, Check(expr.args[0], names));
  GC_ASSIGN_OR_RETURN(const ValueKind b, Check(expr.args[1], names));
  const bool numbers = a <= kDouble && b <= kDouble;
  const bool equality = expr.op == Op::kEq || expr.op == Op::kNe;
  if (numbers || (equality && a == b)) return kTruth;
  return Wrong(absl::StrCat("cannot compare ", Spell(a), " with ", Spell(b)));
}

absl::StatusOr<ValueKind> CheckChoice(const Expr& expr, const KnownNames& names) {
  GC_RETURN_IF_ERROR(Want(expr.args[0], names, kTruth));
  GC_ASSIGN_OR_RETURN(const ValueKind yes, Check(expr.args[1], names));
  GC_RETURN_IF_ERROR(Want(expr.args[2], names, yes));
  return yes;
}

absl::StatusOr<ValueKind> CheckAll(const Expr& expr, const KnownNames& names, ValueKind kind) {
  GC_RETURN_IF_ERROR(WantAll(expr, names, kind));
  return kind;
}

absl::StatusOr<ValueKind> Check(const Expr& expr, const KnownNames& names) {
  switch (expr.op) {
    case Op::kInt:
      return kWhole;
    case Op::kDType:
      return kDType;
    case Op::kName:
      return CheckName(expr.name, names);
    case Op::kCall:
      return CheckCall(expr, names);
    case Op::kNot:
    case Op::kOr:
    case Op::kAnd:
      return CheckAll(expr, names, kTruth);
    case Op::kChoose:
      return CheckChoice(expr, names);
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return CheckComparison(expr, names);
    default:
      return CheckAll(expr, names, kWhole);
  }
}

}  // namespace

const char* Spell(ValueKind kind) {
  constexpr const char* kNames[] = {"a whole number", "an f64", "a truth value", "a dtype",
                                    "a word"};
  return kNames[static_cast<int>(kind)];
}

absl::Status CheckArguments(const Expr& call, std::size_t want) {
  if (call.args.size() == want) return absl::OkStatus();
  return Wrong(absl::StrCat(call.name, " takes ", want, " arguments, got ", call.args.size()));
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const AttributeSpec* FindAttribute(const std::vector<AttributeSpec>& attributes,
                                   const std::string& name) {
  for (const AttributeSpec& attribute : attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

absl::StatusOr<ValueKind> KindOf(const Expr& expr, const KnownNames& names) {
  absl::StatusOr<ValueKind> kind = Check(expr, names);
  if (kind.ok()) return kind;
  return Annotate(kind.status(), absl::StrCat("in '", ToText(expr), "'"));
}

absl::Status CheckKind(const Expr& expr, const KnownNames& names, ValueKind want) {
  GC_ASSIGN_OR_RETURN(const ValueKind got, KindOf(expr, names));
  if (got == want) return absl::OkStatus();
  return Wrong(absl::StrCat("in '", ToText(expr), "': want ", Spell(want), ", got ", Spell(got)));
}

}  // namespace gridclock
