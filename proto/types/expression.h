// Integer expressions of the words of a kernel: "2*numel(c)*K". Grammar: docs/signatures.md.
#ifndef GRIDCLOCK_PROTO_TYPES_EXPRESSION_H_
#define GRIDCLOCK_PROTO_TYPES_EXPRESSION_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/types/dtype.h"

namespace gridclock {

// A node of an expression. Plain data: copyable, comparable.
struct Expr {
  enum class Op : std::uint8_t {
    kInt,    // value
    kName,   // name: a dimension, an attribute, a dtype variable, or a word of an enum attribute
    kDType,  // dtype
    kCall,   // name(args...)
    kNot,
    kNegate,
    kOr,
    kAnd,
    kEq,
    kNe,
    kLt,
    kLe,
    kGt,
    kGe,
    kAdd,
    kSub,
    kMul,
    kDiv,
    kMod,
    kChoose,  // args[0] ? args[1] : args[2]
  };
  Op op = Op::kInt;
  std::int64_t value = 0;
  std::string name = {};
  DType dtype = DType::kF32;
  std::vector<Expr> args = {};
  friend bool operator==(const Expr&, const Expr&) = default;
};

// What an expression may come to: a number, a truth, a dtype, or a word of an enum attribute.
// An f64 attribute takes part as a double, in comparisons only.
using Value = std::variant<std::int64_t, double, bool, DType, std::string>;

// Text that parses back to the same tree.
std::string ToText(const Expr& expr);
absl::StatusOr<Expr> ParseExpr(absl::string_view text);

// Where names get their values. Implemented by Binding; by a table in tests.
class Scope {
 public:
  virtual ~Scope() = default;
  // The value of a name, or INVALID_ARGUMENT "unbound name 'K'".
  virtual absl::StatusOr<Value> Lookup(absl::string_view name) const = 0;
  // numel, bytes, rank, count of an operand or a run; dim(x, i); sizeof(T). `index` is dim's.
  virtual absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                               std::int64_t index) const = 0;
  // Said of each step of an evaluation; an error ends it.
  virtual absl::Status Spend(std::int64_t /*steps*/) const { return absl::OkStatus(); }
};

// Every step is checked: overflow of 64 bits, division by zero and operands of the wrong kind are
// INVALID_ARGUMENT that quotes the expression. Division and remainder round toward minus infinity.
absl::StatusOr<Value> Evaluate(const Expr& expr, const Scope& scope);
absl::StatusOr<std::int64_t> EvaluateInt(const Expr& expr, const Scope& scope);
absl::StatusOr<bool> EvaluateBool(const Expr& expr, const Scope& scope);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_EXPRESSION_H_
