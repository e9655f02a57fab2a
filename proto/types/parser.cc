// The grammar of the words, one function per rule. docs/signatures.md has it whole.
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/types/expression_parser.h"
#include "proto/types/kernel_spec.h"
#include "proto/types/lexer.h"

namespace gridclock {
namespace {

using Kind = Token::Kind;
using Type = AttributeSpec::Type;
constexpr int kMaxChoices = 16;  // "? [ ]" within one another.

absl::StatusOr<double> ReadDouble(TokenReader& reader) {
  const bool negative = reader.TryEat("-");
  double value = std::numeric_limits<double>::infinity();
  const Token& token = reader.Peek();
  const bool number = token.kind == Kind::kInt || token.kind == Kind::kFloat;
  if (!reader.At("inf") && !(number && absl::SimpleAtod(token.text, &value))) {
    return reader.Want("a number");
  }
  reader.Next();
  return negative ? -value : value;
}

absl::StatusOr<std::int64_t> ReadWhole(TokenReader& reader) {
  const bool negative = reader.TryEat("-");
  std::int64_t value = 0;
  const std::string text = absl::StrCat(negative ? "-" : "", reader.Peek().text);
  if (reader.Peek().kind != Kind::kInt || !absl::SimpleAtoi(text, &value)) {
    return reader.Want("a whole number of 64 bits");
  }
  reader.Next();
  return value;
}

absl::StatusOr<std::int64_t> ReadPromise(TokenReader& reader) {
  if (reader.At("0")) return reader.Want("a number above 0");
  if (reader.At("-")) return reader.Want("a number above 0");
  return ReadWhole(reader);
}

absl::StatusOr<DType> ReadDType(TokenReader& reader) {
  const std::optional<DType> dtype = ParseDType(reader.Peek().text);
  if (!dtype) return reader.Want("a dtype");
  reader.Next();
  return *dtype;
}

absl::StatusOr<AttributeValue> ReadLiteral(Type type, TokenReader& reader) {
  switch (type) {
    case Type::kI64:
      return ReadWhole(reader);
    case Type::kF64:
      return ReadDouble(reader);
    case Type::kBool:
      if (!reader.At("true") && !reader.At("false")) return reader.Want("true or false");
      return reader.Next().text == "true";
    case Type::kDType:
      return ReadDType(reader);
    case Type::kEnum:
      break;
  }
  return reader.EatName("a word");
}

// A bound of an i64 is kept exactly; its double is for readers that want one kind of number.
absl::Status ReadBound(Type type, TokenReader& reader, double* bound, std::int64_t* exact) {
  const bool infinite = reader.At("inf") || (reader.At("-") && reader.AtAhead(1, "inf"));
  if (type == Type::kF64 || infinite) {
    GC_ASSIGN_OR_RETURN(*bound, ReadDouble(reader));
    if (type == Type::kF64) return absl::OkStatus();
    *exact = *bound < 0 ? std::numeric_limits<std::int64_t>::min()
                        : std::numeric_limits<std::int64_t>::max();
    return absl::OkStatus();
  }
  GC_ASSIGN_OR_RETURN(*exact, ReadWhole(reader));
  *bound = static_cast<double>(*exact);
  return absl::OkStatus();
}

absl::Status ReadRange(AttributeSpec& attribute, TokenReader& reader) {
  if (!reader.At("[") && !reader.At("(")) return reader.Want("'[', '(' or '{'");
  if (attribute.type != Type::kI64 && attribute.type != Type::kF64) {
    return reader.Want("a set in braces (a range is for i64 and f64)");
  }
  AttributeSpec::Range range;
  range.low_open = reader.Next().text == "(";
  GC_RETURN_IF_ERROR(ReadBound(attribute.type, reader, &range.low, &range.low_int));
  GC_RETURN_IF_ERROR(reader.Eat(","));
  GC_RETURN_IF_ERROR(ReadBound(attribute.type, reader, &range.high, &range.high_int));
  if (!reader.At("]") && !reader.At(")")) return reader.Want("']' or ')'");
  range.high_open = reader.Next().text == ")";
  attribute.range = range;
  return absl::OkStatus();
}

absl::Status ReadSet(AttributeSpec& attribute, TokenReader& reader) {
  do {
    GC_ASSIGN_OR_RETURN(AttributeValue value, ReadLiteral(attribute.type, reader));
    attribute.allowed.push_back(std::move(value));
  } while (reader.TryEat(","));
  return reader.Eat("}");
}

absl::Status ReadType(AttributeSpec& attribute, TokenReader& reader) {
  if (reader.TryEat("i64"))
    attribute.type = Type::kI64;
  else if (reader.TryEat("f64"))
    attribute.type = Type::kF64;
  else if (reader.TryEat("bool"))
    attribute.type = Type::kBool;
  else if (reader.TryEat("dtype"))
    attribute.type = Type::kDType;
  else if (!reader.TryEat("{"))
    return reader.Want("i64, f64, bool, dtype or words in braces");
  else {
    attribute.type = Type::kEnum;
    do {
      GC_ASSIGN_OR_RETURN(std::string word, reader.EatName("a word"));
      attribute.words.push_back(std::move(word));
    } while (reader.TryEat(","));
    return reader.Eat("}");
  }
  return absl::OkStatus();
}

absl::StatusOr<AttributeSpec> ReadAttribute(TokenReader& reader) {
  AttributeSpec attribute;
  GC_ASSIGN_OR_RETURN(attribute.name, reader.EatName("the name of an attribute"));
  GC_RETURN_IF_ERROR(reader.Eat(":"));
  GC_RETURN_IF_ERROR(ReadType(attribute, reader));
  if (reader.TryEat("=")) {
    GC_ASSIGN_OR_RETURN(attribute.default_value, ReadLiteral(attribute.type, reader));
  }
  if (reader.TryEat("in")) {
    GC_RETURN_IF_ERROR(reader.TryEat("{") ? ReadSet(attribute, reader)
                                          : ReadRange(attribute, reader));
  }
  return attribute;
}

absl::StatusOr<std::vector<Dim>> ReadDims(TokenReader& reader, int depth);

absl::StatusOr<Dim> ReadSwap(TokenReader& reader) {
  Dim dim{.kind = Dim::Kind::kSwap};
  GC_RETURN_IF_ERROR(reader.Eat("("));
  GC_ASSIGN_OR_RETURN(dim.name, reader.EatVariable("the name of a run"));
  GC_RETURN_IF_ERROR(reader.Eat(","));
  GC_ASSIGN_OR_RETURN(dim.swap_i, reader.EatName("an attribute"));
  GC_RETURN_IF_ERROR(reader.Eat(","));
  GC_ASSIGN_OR_RETURN(dim.swap_j, reader.EatName("an attribute"));
  GC_RETURN_IF_ERROR(reader.Eat(")"));
  return dim;
}

absl::StatusOr<Dim> ReadRun(TokenReader& reader) {
  if (reader.TryEat("swap")) return ReadSwap(reader);
  Dim dim{.kind = Dim::Kind::kRun, .name = "*"};
  if (reader.Peek().kind == Kind::kVariable) dim.name = std::string(reader.Next().text);
  return dim;
}

absl::StatusOr<Dim> ReadAt(TokenReader& reader) {
  Dim dim{.kind = Dim::Kind::kAt, .name = std::string(reader.Next().text)};
  GC_RETURN_IF_ERROR(reader.Eat("@"));
  GC_ASSIGN_OR_RETURN(dim.at, reader.EatName("an attribute"));
  return dim;
}

absl::StatusOr<Dim> ReadExprOrChoice(TokenReader& reader, int depth) {
  Dim dim;
  GC_ASSIGN_OR_RETURN(dim.expr, ReadOr(reader));
  if (!reader.At("?") || !reader.AtAhead(1, "[")) {
    GC_ASSIGN_OR_RETURN(dim.expr, ReadChoice(std::move(dim.expr), reader));
    return dim;
  }
  if (depth >= kMaxChoices) return reader.Want("fewer choices within one another");
  dim.kind = Dim::Kind::kChoose;
  reader.Next();
  GC_RETURN_IF_ERROR(reader.Eat("["));
  GC_ASSIGN_OR_RETURN(dim.yes, ReadDims(reader, depth + 1));
  GC_RETURN_IF_ERROR(reader.Eat(":"));
  GC_RETURN_IF_ERROR(reader.Eat("["));
  GC_ASSIGN_OR_RETURN(dim.no, ReadDims(reader, depth + 1));
  return dim;
}

absl::StatusOr<Dim> ReadDim(TokenReader& reader, int depth) {
  if (reader.TryEat("*")) return ReadRun(reader);
  if (reader.Peek().kind == Kind::kVariable && reader.AtAhead(1, "@")) return ReadAt(reader);
  return ReadExprOrChoice(reader, depth);
}

// At least one, up to and with the bracket that closes them.
absl::StatusOr<std::vector<Dim>> ReadDims(TokenReader& reader, int depth) {
  std::vector<Dim> dims;
  do {
    GC_ASSIGN_OR_RETURN(Dim dim, ReadDim(reader, depth));
    dims.push_back(std::move(dim));
  } while (reader.TryEat(","));
  GC_RETURN_IF_ERROR(reader.Eat("]"));
  return dims;
}

absl::StatusOr<std::string> ReadElem(TokenReader& reader) {
  const Token& token = reader.Peek();
  const bool named = token.kind == Kind::kName && !IsReserved(token.text);
  if (token.kind != Kind::kVariable && !named && !ParseDType(token.text)) {
    return reader.Want("a dtype, a dtype variable or an attribute");
  }
  return std::string(reader.Next().text);
}

absl::StatusOr<OperandSpec> ReadOperand(TokenReader& reader) {
  OperandSpec operand;
  operand.inout = reader.TryEat("inout");
  GC_ASSIGN_OR_RETURN(operand.name, reader.EatName("the name of an operand"));
  GC_RETURN_IF_ERROR(reader.Eat(":"));
  GC_ASSIGN_OR_RETURN(operand.elem, ReadElem(reader));
  GC_RETURN_IF_ERROR(reader.Eat("["));
  if (!reader.TryEat("]")) {
    GC_ASSIGN_OR_RETURN(operand.dims, ReadDims(reader, 0));
  }
  operand.is_list = reader.TryEat("...");
  if (reader.TryEat("over")) {
    GC_ASSIGN_OR_RETURN(operand.over, reader.EatName("the name of an input"));
  }
  return operand;
}

bool AtOperand(const TokenReader& reader) {
  return reader.At("inout") || (reader.Peek().kind == Kind::kName &&
                                (reader.AtAhead(1, ":") || !IsReserved(reader.Peek().text)));
}

absl::Status ReadOperands(TokenReader& reader, std::vector<OperandSpec>& operands) {
  if (!AtOperand(reader)) return absl::OkStatus();
  do {
    GC_ASSIGN_OR_RETURN(OperandSpec operand, ReadOperand(reader));
    operands.push_back(std::move(operand));
  } while (reader.TryEat(","));
  return absl::OkStatus();
}

absl::StatusOr<Condition> ReadCondition(TokenReader& reader) {
  Condition condition;
  if (reader.Peek().kind != Kind::kVariable || !reader.AtAhead(1, "in")) {
    GC_ASSIGN_OR_RETURN(condition.expr, ReadExpr(reader));
    return condition;
  }
  condition.variable = std::string(reader.Next().text);
  reader.Next();
  GC_RETURN_IF_ERROR(reader.Eat("{"));
  do {
    GC_ASSIGN_OR_RETURN(const DType dtype, ReadDType(reader));
    condition.dtypes.push_back(dtype);
  } while (reader.TryEat(","));
  GC_RETURN_IF_ERROR(reader.Eat("}"));
  return condition;
}

absl::StatusOr<ParamSpec> ReadListParam(ParamSpec::Kind kind, TokenReader& reader) {
  reader.Next();
  ParamSpec param{.kind = kind};
  GC_RETURN_IF_ERROR(reader.Eat("("));
  GC_ASSIGN_OR_RETURN(param.name, reader.EatName("the name of a list"));
  GC_RETURN_IF_ERROR(reader.Eat(")"));
  return param;
}

absl::Status ReadValueParam(ParamSpec& param, TokenReader& reader) {
  constexpr absl::string_view kTypes[] = {"int",   "unsigned", "int64", "uint64",
                                          "float", "double",   "bool"};
  param.kind = ParamSpec::Kind::kValue;
  for (const absl::string_view type : kTypes) {
    if (reader.At(type)) param.ctype = std::string(type);
  }
  if (param.ctype.empty()) {
    return reader.Want("int, unsigned, int64, uint64, float, double or bool");
  }
  reader.Next();
  GC_RETURN_IF_ERROR(reader.Eat("="));
  GC_ASSIGN_OR_RETURN(param.expr, ReadExpr(reader));
  if (reader.TryEat("multiple")) {
    GC_ASSIGN_OR_RETURN(param.promise, ReadPromise(reader));
  }
  return absl::OkStatus();
}

absl::StatusOr<ParamSpec> ReadParam(TokenReader& reader) {
  if (reader.At("table")) return ReadListParam(ParamSpec::Kind::kTable, reader);
  if (reader.At("pointers")) return ReadListParam(ParamSpec::Kind::kPointers, reader);
  if (reader.At("sizes")) return ReadListParam(ParamSpec::Kind::kSizes, reader);
  ParamSpec param;
  if (reader.TryEat("null")) {
    param.kind = ParamSpec::Kind::kNull;
    return param;
  }
  GC_ASSIGN_OR_RETURN(param.name, reader.EatName("a parameter"));
  if (reader.TryEat(":")) {
    GC_RETURN_IF_ERROR(ReadValueParam(param, reader));
  } else if (reader.TryEat("align")) {
    GC_ASSIGN_OR_RETURN(param.promise, ReadPromise(reader));
  }
  return param;
}

absl::Status ReadParams(TokenReader& reader, std::vector<ParamSpec>& params) {
  do {
    GC_ASSIGN_OR_RETURN(ParamSpec param, ReadParam(reader));
    params.push_back(std::move(param));
  } while (reader.TryEat(","));
  return absl::OkStatus();
}

absl::Status ReadExprs(TokenReader& reader, std::vector<Expr>& exprs) {
  GC_RETURN_IF_ERROR(reader.Eat("("));
  do {
    GC_ASSIGN_OR_RETURN(Expr expr, ReadExpr(reader));
    exprs.push_back(std::move(expr));
  } while (reader.TryEat(","));
  return reader.Eat(")");
}

std::optional<Expr>* ExprClause(absl::string_view word, Clauses& clauses) {
  if (word == "flops") return &clauses.flops;
  if (word == "bytes") return &clauses.bytes;
  if (word == "when") return &clauses.when;
  return word == "shared" ? &clauses.shared : nullptr;
}

std::vector<Expr>* ListClause(absl::string_view word, Clauses& clauses) {
  if (word == "grid") return &clauses.grid;
  if (word == "block") return &clauses.block;
  return word == "cluster" ? &clauses.cluster : nullptr;
}

absl::Status ReadClause(TokenReader& reader, Clauses& clauses) {
  const absl::string_view word = reader.Peek().text;
  std::optional<Expr>* const one = ExprClause(word, clauses);
  std::vector<Expr>* const many = ListClause(word, clauses);
  const bool params = reader.At("params");
  if ((one != nullptr && one->has_value()) || (many != nullptr && !many->empty()) ||
      (params && !clauses.params.empty())) {
    return reader.Want(absl::StrCat("one clause '", word, "' alone"));
  }
  if (one == nullptr && many == nullptr && !params && !reader.At("scratch")) {
    return reader.Want("a clause or the end");
  }
  reader.Next();
  if (many != nullptr) return ReadExprs(reader, *many);
  if (params) return ReadParams(reader, clauses.params);
  if (one != nullptr) {
    GC_ASSIGN_OR_RETURN(*one, ReadExpr(reader));
    return absl::OkStatus();
  }
  GC_ASSIGN_OR_RETURN(OperandSpec operand, ReadOperand(reader));
  clauses.scratch.push_back(std::move(operand));
  return absl::OkStatus();
}

absl::Status ReadClauses(TokenReader& reader, Clauses& clauses) {
  while (!reader.AtEnd()) GC_RETURN_IF_ERROR(ReadClause(reader, clauses));
  return absl::OkStatus();
}

absl::Status ReadSignature(TokenReader& reader, KernelSpec& spec) {
  GC_RETURN_IF_ERROR(ReadOperands(reader, spec.inputs));
  if (reader.TryEat("->")) GC_RETURN_IF_ERROR(ReadOperands(reader, spec.outputs));
  if (reader.TryEat(";")) {
    do {
      GC_ASSIGN_OR_RETURN(AttributeSpec attribute, ReadAttribute(reader));
      spec.attributes.push_back(std::move(attribute));
    } while (reader.TryEat(","));
  }
  if (reader.TryEat("where")) {
    do {
      GC_ASSIGN_OR_RETURN(Condition condition, ReadCondition(reader));
      spec.conditions.push_back(std::move(condition));
    } while (reader.TryEat(","));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<KernelSpec> ParseKernelSpec(absl::string_view text) {
  GC_ASSIGN_OR_RETURN(TokenReader reader, TokenReader::Create(text));
  KernelSpec spec;
  // A kernel may be called like a function of the language: "max".
  if (reader.Peek().kind != Kind::kName) return reader.Want("the name of the kernel");
  spec.name = std::string(reader.Next().text);
  GC_RETURN_IF_ERROR(ReadSignature(reader, spec));
  GC_RETURN_IF_ERROR(ReadClauses(reader, spec.clauses));
  GC_RETURN_IF_ERROR(Validate(spec));
  return spec;
}

absl::StatusOr<Clauses> ParseClauses(absl::string_view text) {
  GC_ASSIGN_OR_RETURN(TokenReader reader, TokenReader::Create(text));
  Clauses clauses;
  GC_RETURN_IF_ERROR(ReadClauses(reader, clauses));
  return clauses;
}

}  // namespace gridclock
