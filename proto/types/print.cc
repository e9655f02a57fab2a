// Words as text that parses back to the same words.
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/types/expression.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/spec_facts.h"

namespace gridclock {
namespace {

using Op = Expr::Op;

struct Spelling {
  const char* symbol;
  int level;  // Binds tighter the higher.
};

Spelling SpellingOf(Op op) {
  switch (op) {
    case Op::kOr:
      return {" || ", 1};
    case Op::kAnd:
      return {" && ", 2};
    case Op::kEq:
      return {" == ", 3};
    case Op::kNe:
      return {" != ", 3};
    case Op::kLt:
      return {" < ", 3};
    case Op::kLe:
      return {" <= ", 3};
    case Op::kGt:
      return {" > ", 3};
    case Op::kGe:
      return {" >= ", 3};
    case Op::kAdd:
      return {" + ", 4};
    case Op::kSub:
      return {" - ", 4};
    case Op::kMul:
      return {"*", 5};
    case Op::kDiv:
      return {" / ", 5};
    case Op::kMod:
      return {" % ", 5};
    case Op::kNot:
      return {"!", 6};
    case Op::kNegate:
      return {"-", 6};
    case Op::kChoose:
      return {"", 0};
    default:
      return {"", 7};
  }
}
constexpr int kAny = 0, kOrLevel = 1, kCompareLevel = 3, kUnaryLevel = 6;

// In parentheses if it binds looser than its place needs.
std::string Print(const Expr& expr, int level);

std::string PrintAny(const Expr& expr) {
  const Spelling spelling = SpellingOf(expr.op);
  const auto arg = [&](std::size_t i, int level) { return Print(expr.args[i], level); };
  switch (expr.op) {
    case Op::kInt:
      return absl::StrCat(expr.value);
    case Op::kName:
      return expr.name;
    case Op::kDType:
      return std::string(Name(expr.dtype));
    case Op::kCall:
      return absl::StrCat(
          expr.name, "(",
          absl::StrJoin(expr.args, ", ",
                        [](std::string* out, const Expr& e) { *out += Print(e, kAny); }),
          ")");
    case Op::kNot:
    case Op::kNegate:
      return absl::StrCat(spelling.symbol, arg(0, kUnaryLevel));
    case Op::kChoose:
      return absl::StrCat(arg(0, kOrLevel), " ? ", arg(1, kAny), " : ", arg(2, kAny));
    default:
      break;
  }
  // Operators of one level group from the left; comparisons do not group at all.
  const int left = spelling.level == kCompareLevel ? spelling.level + 1 : spelling.level;
  return absl::StrCat(arg(0, left), spelling.symbol, arg(1, spelling.level + 1));
}

std::string Print(const Expr& expr, int level) {
  std::string text = PrintAny(expr);
  return SpellingOf(expr.op).level < level ? absl::StrCat("(", text, ")") : text;
}

std::string PrintDouble(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

std::string PrintDim(const Dim& dim);

std::string PrintDims(const std::vector<Dim>& dims) {
  return absl::StrCat(
      "[",
      absl::StrJoin(dims, ", ", [](std::string* out, const Dim& dim) { *out += PrintDim(dim); }),
      "]");
}

std::string PrintDim(const Dim& dim) {
  switch (dim.kind) {
    case Dim::Kind::kExpr:
      return ToText(dim.expr);
    case Dim::Kind::kRun:
      return dim.name == "*" ? "*" : absl::StrCat("*", dim.name);
    case Dim::Kind::kSwap:
      return absl::StrCat("*swap(", dim.name, ", ", dim.swap_i, ", ", dim.swap_j, ")");
    case Dim::Kind::kAt:
      return absl::StrCat(dim.name, " @ ", dim.at);
    case Dim::Kind::kChoose:
      break;
  }
  return absl::StrCat(Print(dim.expr, kOrLevel), " ? ", PrintDims(dim.yes), " : ",
                      PrintDims(dim.no));
}

std::string PrintOperands(const std::vector<OperandSpec>& operands) {
  return absl::StrJoin(operands, ", ", [](std::string* out, const OperandSpec& operand) {
    *out += ToText(operand);
  });
}

std::string PrintType(const AttributeSpec& attribute) {
  switch (attribute.type) {
    case AttributeSpec::Type::kI64:
      return "i64";
    case AttributeSpec::Type::kF64:
      return "f64";
    case AttributeSpec::Type::kBool:
      return "bool";
    case AttributeSpec::Type::kDType:
      return "dtype";
    case AttributeSpec::Type::kEnum:
      break;
  }
  return absl::StrCat("{", absl::StrJoin(attribute.words, ", "), "}");
}

std::string PrintBound(const AttributeSpec& attribute, double bound, std::int64_t exact) {
  const bool whole = attribute.type == AttributeSpec::Type::kI64 && !std::isinf(bound);
  return whole ? absl::StrCat(exact) : PrintDouble(bound);
}

std::string PrintRange(const AttributeSpec& attribute) {
  const AttributeSpec::Range& range = *attribute.range;
  return absl::StrCat(range.low_open ? "(" : "[", PrintBound(attribute, range.low, range.low_int),
                      ", ", PrintBound(attribute, range.high, range.high_int),
                      range.high_open ? ")" : "]");
}

std::string PrintParam(const ParamSpec& param) {
  const std::string promise = absl::StrCat(param.promise);
  switch (param.kind) {
    case ParamSpec::Kind::kOperand:
      return param.promise == 0 ? param.name : absl::StrCat(param.name, " align ", promise);
    case ParamSpec::Kind::kTable:
      return absl::StrCat("table(", param.name, ")");
    case ParamSpec::Kind::kPointers:
      return absl::StrCat("pointers(", param.name, ")");
    case ParamSpec::Kind::kSizes:
      return absl::StrCat("sizes(", param.name, ")");
    case ParamSpec::Kind::kNull:
      return "null";
    case ParamSpec::Kind::kValue:
      break;
  }
  return absl::StrCat(param.name, ": ", param.ctype, " = ", param.expr ? ToText(*param.expr) : "",
                      param.promise == 0 ? "" : absl::StrCat(" multiple ", promise));
}

std::string PrintSignature(const KernelSpec& spec) {
  std::string text = spec.name;
  if (!spec.inputs.empty()) absl::StrAppend(&text, " ", PrintOperands(spec.inputs));
  if (!spec.outputs.empty()) absl::StrAppend(&text, " -> ", PrintOperands(spec.outputs));
  const char* before = "; ";
  for (const AttributeSpec& attribute : spec.attributes) {
    absl::StrAppend(&text, std::exchange(before, ", "), ToText(attribute));
  }
  before = " where ";
  for (const Condition& condition : spec.conditions) {
    absl::StrAppend(&text, std::exchange(before, ", "), ToText(condition));
  }
  return text;
}

}  // namespace

std::string ToText(const Expr& expr) {
  return Print(expr, kAny);
}

std::string ToText(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(std::int64_t whole) const { return absl::StrCat(whole); }
    std::string operator()(double number) const { return PrintDouble(number); }
    std::string operator()(bool truth) const { return truth ? "true" : "false"; }
    std::string operator()(DType dtype) const { return std::string(Name(dtype)); }
    std::string operator()(const std::string& word) const { return word; }
  };
  return std::visit(Visitor(), value);
}

std::string ToText(const OperandSpec& operand) {
  return absl::StrCat(operand.inout ? "inout " : "", operand.name, ": ", operand.elem,
                      PrintDims(operand.dims), operand.is_list ? "..." : "",
                      operand.over.empty() ? "" : " over ", operand.over);
}

std::string ToText(const AttributeSpec& attribute) {
  std::string text = absl::StrCat(attribute.name, ": ", PrintType(attribute));
  if (attribute.default_value) absl::StrAppend(&text, " = ", ToText(*attribute.default_value));
  if (attribute.range) absl::StrAppend(&text, " in ", PrintRange(attribute));
  const char* before = " in {";
  for (const AttributeValue& value : attribute.allowed) {
    absl::StrAppend(&text, std::exchange(before, ", "), ToText(value));
  }
  return attribute.allowed.empty() ? text : text + "}";
}

std::string ToText(const Condition& condition) {
  if (condition.expr) return ToText(*condition.expr);
  return absl::StrCat(
      condition.variable, " in {",
      absl::StrJoin(condition.dtypes, ", ",
                    [](std::string* out, DType dtype) { absl::StrAppend(out, Name(dtype)); }),
      "}");
}

std::string ToText(const Clauses& clauses) {
  std::vector<std::string> parts;
  const auto one = [&](const char* word, const std::optional<Expr>& expr) {
    if (expr) parts.push_back(absl::StrCat(word, " ", ToText(*expr)));
  };
  const auto many = [&](const char* word, const std::vector<Expr>& exprs) {
    const auto print = [](std::string* out, const Expr& expr) { *out += ToText(expr); };
    if (!exprs.empty()) {
      parts.push_back(absl::StrCat(word, " (", absl::StrJoin(exprs, ", ", print), ")"));
    }
  };
  one("flops", clauses.flops);
  one("bytes", clauses.bytes);
  one("when", clauses.when);
  one("shared", clauses.shared);
  many("grid", clauses.grid);
  many("block", clauses.block);
  many("cluster", clauses.cluster);
  for (const OperandSpec& operand : clauses.scratch) {
    parts.push_back(absl::StrCat("scratch ", ToText(operand)));
  }
  const auto print = [](std::string* out, const ParamSpec& param) { *out += PrintParam(param); };
  if (!clauses.params.empty()) {
    parts.push_back(absl::StrCat("params ", absl::StrJoin(clauses.params, ", ", print)));
  }
  return absl::StrJoin(parts, " ");
}

std::string ToText(const KernelSpec& spec) {
  const std::string clauses = ToText(spec.clauses);
  return absl::StrCat(PrintSignature(spec), clauses.empty() ? "" : " ", clauses);
}

bool SameWords(const KernelSpec& a, const KernelSpec& b) {
  return a.name == b.name && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.attributes == b.attributes && a.conditions == b.conditions &&
         a.clauses.flops == b.clauses.flops && a.clauses.bytes == b.clauses.bytes;
}

}  // namespace gridclock
