#include "proto/types/expression.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/expression_check.h"

namespace gridclock {
namespace {

using Op = Expr::Op;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::StatusOr<Value> Eval(const Expr& expr, const Scope& scope);

const char* KindOf(const Value& value) {
  return Spell(static_cast<ValueKind>(value.index()));
}

absl::StatusOr<std::int64_t> EvalInt(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const Value value, Eval(expr, scope));
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return Wrong(absl::StrCat("want a whole number, got ", KindOf(value)));
}

absl::StatusOr<bool> EvalBool(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const Value value, Eval(expr, scope));
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  return Wrong(absl::StrCat("want a truth value, got ", KindOf(value)));
}

// Rounds toward minus infinity.
absl::StatusOr<std::int64_t> Divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return Wrong("division by zero");
  if (b == -1) {
    if (std::int64_t negated; !__builtin_sub_overflow(std::int64_t{0}, a, &negated)) return negated;
    return Wrong("overflow of 64 bits");
  }
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Has the sign of `b`, as belongs to a division that rounds down.
absl::StatusOr<std::int64_t> Remainder(std::int64_t a, std::int64_t b) {
  if (b == 0) return Wrong("division by zero");
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

absl::StatusOr<std::int64_t> CeilDivide(std::int64_t a, std::int64_t b) {
  GC_ASSIGN_OR_RETURN(const std::int64_t down, Divide(a, b));
  GC_ASSIGN_OR_RETURN(const std::int64_t rest, Remainder(a, b));
  return rest == 0 ? down : down + 1;
}

absl::StatusOr<std::int64_t> NextPowerOfTwo(std::int64_t a) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 62;
  if (a > kLargest) return Wrong("overflow of 64 bits");
  std::int64_t power = 1;
  while (power < a) power *= 2;
  return power;
}

absl::StatusOr<std::int64_t> Arithmetic(Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Op::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Op::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Op::kDiv:
      return Divide(a, b);
    case Op::kMod:
      return Remainder(a, b);
    default:
      return absl::InternalError("not an arithmetic operator");
  }
  if (overflow) return Wrong("overflow of 64 bits");
  return result;
}

// -1, 0, 1; 2 where one is NaN. A long double holds every int64 and every double.
int Order(long double a, long double b) {
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

long double Number(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return static_cast<long double>(*whole);
  }
  return std::get<double>(value);
}

absl::StatusOr<bool> Compare(Op op, const Value& a, const Value& b) {
  const bool equality = op == Op::kEq || op == Op::kNe;
  const bool numbers = a.index() <= 1 && b.index() <= 1;
  if (!numbers && (!equality || a.index() != b.index())) {
    return Wrong(absl::StrCat("cannot compare ", KindOf(a), " with ", KindOf(b)));
  }
  const int order = numbers ? Order(Number(a), Number(b)) : (a == b ? 0 : 2);
  switch (op) {
    case Op::kEq:
      return order == 0;
    case Op::kNe:
      return order != 0;
    case Op::kLt:
      return order == -1;
    case Op::kLe:
      return order == -1 || order == 0;
    case Op::kGt:
      return order == 1;
    default:
      return order == 1 || order == 0;
  }
}

absl::StatusOr<std::int64_t> LeastOrMost(const Expr& call, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(std::int64_t best, EvalInt(call.args[0], scope));
  for (std::size_t i = 1; i < call.args.size(); ++i) {
    GC_ASSIGN_OR_RETURN(const std::int64_t other, EvalInt(call.args[i], scope));
    best = call.name == "min" ? std::min(best, other) : std::max(best, other);
  }
  return best;
}

absl::StatusOr<std::int64_t> SizeOfType(const Expr& argument, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const Value value, Eval(argument, scope));
  if (const auto* dtype = std::get_if<DType>(&value)) return SizeOf(*dtype);
  return Wrong(absl::StrCat("sizeof wants a dtype, got ", KindOf(value)));
}

absl::StatusOr<std::int64_t> MeasureOperand(const Expr& call, const Scope& scope) {
  const bool is_dim = call.name == "dim";
  GC_RETURN_IF_ERROR(CheckArguments(call, is_dim ? 2 : 1));
  if (call.args[0].op != Op::kName) {
    return Wrong(absl::StrCat(call.name, " wants the name of an operand"));
  }
  std::int64_t index = 0;
  if (is_dim) {
    GC_ASSIGN_OR_RETURN(index, EvalInt(call.args[1], scope));
  }
  return scope.Measure(call.name, call.args[0].name, index);
}

absl::StatusOr<std::int64_t> EvalCall(const Expr& call, const Scope& scope) {
  if (call.args.empty()) return Wrong(absl::StrCat(call.name, " wants an argument"));
  if (call.name == "min" || call.name == "max") return LeastOrMost(call, scope);
  if (call.name == "sizeof") {
    GC_RETURN_IF_ERROR(CheckArguments(call, 1));
    return SizeOfType(call.args[0], scope);
  }
  if (call.name == "next_pow2") {
    GC_RETURN_IF_ERROR(CheckArguments(call, 1));
    GC_ASSIGN_OR_RETURN(const std::int64_t a, EvalInt(call.args[0], scope));
    return NextPowerOfTwo(a);
  }
  if (call.name == "ceil_div") {
    GC_RETURN_IF_ERROR(CheckArguments(call, 2));
    GC_ASSIGN_OR_RETURN(const std::int64_t a, EvalInt(call.args[0], scope));
    GC_ASSIGN_OR_RETURN(const std::int64_t b, EvalInt(call.args[1], scope));
    return CeilDivide(a, b);
  }
  return MeasureOperand(call, scope);
}

absl::StatusOr<Value> EvalLogic(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const bool left, EvalBool(expr.args[0], scope));
  if (left == (expr.op == Op::kOr)) return Value(left);
  GC_ASSIGN_OR_RETURN(const bool right, EvalBool(expr.args[1], scope));
  return Value(right);
}

absl::StatusOr<Value> EvalCompare(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const Value a, Eval(expr.args[0], scope));
  GC_ASSIGN_OR_RETURN(const Value b, Eval(expr.args[1], scope));
  GC_ASSIGN_OR_RETURN(const bool truth, Compare(expr.op, a, b));
  return Value(truth);
}

absl::StatusOr<Value> EvalArithmetic(Op op, const Expr* a, const Expr& b, const Scope& scope) {
  std::int64_t left = 0;
  if (a != nullptr) {
    GC_ASSIGN_OR_RETURN(left, EvalInt(*a, scope));
  }
  GC_ASSIGN_OR_RETURN(const std::int64_t right, EvalInt(b, scope));
  GC_ASSIGN_OR_RETURN(const std::int64_t result, Arithmetic(op, left, right));
  return Value(result);
}

absl::StatusOr<Value> EvalNot(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const bool truth, EvalBool(expr.args[0], scope));
  return Value(!truth);
}

absl::StatusOr<Value> EvalChoose(const Expr& expr, const Scope& scope) {
  GC_ASSIGN_OR_RETURN(const bool yes, EvalBool(expr.args[0], scope));
  return Eval(expr.args[yes ? 1 : 2], scope);
}

absl::StatusOr<Value> Eval(const Expr& expr, const Scope& scope) {
  GC_RETURN_IF_ERROR(scope.Spend(1));
  switch (expr.op) {
    case Op::kInt:
      return Value(expr.value);
    case Op::kName:
      return scope.Lookup(expr.name);
    case Op::kDType:
      return Value(expr.dtype);
    case Op::kCall: {
      GC_ASSIGN_OR_RETURN(const std::int64_t result, EvalCall(expr, scope));
      return Value(result);
    }
    case Op::kNot:
      return EvalNot(expr, scope);
    case Op::kNegate:
      return EvalArithmetic(Op::kSub, nullptr, expr.args[0], scope);
    case Op::kOr:
    case Op::kAnd:
      return EvalLogic(expr, scope);
    case Op::kEq:
    case Op::kNe:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return EvalCompare(expr, scope);
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kMod:
      return EvalArithmetic(expr.op, &expr.args[0], expr.args[1], scope);
    case Op::kChoose:
      return EvalChoose(expr, scope);
  }
  return absl::InternalError("unknown operator");
}

template <typename T>
absl::StatusOr<T> Quoting(const Expr& expr, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return Annotate(result.status(), absl::StrCat("in '", ToText(expr), "'"));
}

}  // namespace

absl::StatusOr<Value> Evaluate(const Expr& expr, const Scope& scope) {
  return Quoting(expr, Eval(expr, scope));
}

absl::StatusOr<std::int64_t> EvaluateInt(const Expr& expr, const Scope& scope) {
  return Quoting(expr, EvalInt(expr, scope));
}

absl::StatusOr<bool> EvaluateBool(const Expr& expr, const Scope& scope) {
  return Quoting(expr, EvalBool(expr, scope));
}

}  // namespace gridclock
