#include "proto/types/expression_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

using Op = Expr::Op;
using Kind = Token::Kind;

struct Binary {
  absl::string_view symbol;
  Op op;
  int level;  // Binds tighter the higher.
};
constexpr Binary kBinaries[] = {{"||", Op::kOr, 1}, {"&&", Op::kAnd, 2}, {"==", Op::kEq, 3},
                                {"!=", Op::kNe, 3}, {"<", Op::kLt, 3},   {"<=", Op::kLe, 3},
                                {">", Op::kGt, 3},  {">=", Op::kGe, 3},  {"+", Op::kAdd, 4},
                                {"-", Op::kSub, 4}, {"*", Op::kMul, 5},  {"/", Op::kDiv, 5},
                                {"%", Op::kMod, 5}};
constexpr int kOrLevel = 1, kCompareLevel = 3, kUnaryLevel = 6;

const Binary* FindBinary(const Token& token, int level) {
  if (token.kind != Kind::kSymbol) return nullptr;
  for (const Binary& binary : kBinaries) {
    if (binary.level == level && binary.symbol == token.text) return &binary;
  }
  return nullptr;
}

// A tree and how high it is.
struct Node {
  Expr expr;
  int height = 1;
};

Node Join(Op op, Node a, Node b) {
  Node node{Expr{.op = op}, 1 + std::max(a.height, b.height)};
  node.expr.args.reserve(2);
  node.expr.args.push_back(std::move(a.expr));
  node.expr.args.push_back(std::move(b.expr));
  return node;
}

class ExprParser {
 public:
  explicit ExprParser(TokenReader& reader) : reader_(reader) {}

  absl::StatusOr<Node> Whole() {
    GC_ASSIGN_OR_RETURN(Node node, Level(kOrLevel));
    return Choice(std::move(node));
  }

  absl::StatusOr<Node> Choice(Node condition) {
    if (!reader_.TryEat("?")) return condition;
    if (++depth_ > kMaxExprDepth) return TooDeep();
    GC_ASSIGN_OR_RETURN(Node yes, Whole());
    GC_RETURN_IF_ERROR(reader_.Eat(":"));
    GC_ASSIGN_OR_RETURN(Node no, Whole());
    --depth_;
    const int height = condition.height;
    Node node = Join(Op::kChoose, std::move(condition), std::move(yes));
    node.height = std::max({node.height, height + 1, no.height + 1});
    node.expr.args.push_back(std::move(no.expr));
    return Checked(std::move(node));
  }

  absl::StatusOr<Node> Level(int level) {
    if (level == kUnaryLevel) return Unary();
    GC_ASSIGN_OR_RETURN(Node node, Level(level + 1));
    while (const Binary* binary = FindBinary(reader_.Peek(), level)) {
      reader_.Next();
      GC_ASSIGN_OR_RETURN(Node right, Level(level + 1));
      GC_ASSIGN_OR_RETURN(node, Checked(Join(binary->op, std::move(node), std::move(right))));
      if (level == kCompareLevel) break;  // a < b < c is no expression.
    }
    return node;
  }

 private:
  absl::StatusOr<Node> Unary() {
    const bool negate = reader_.At("-");
    if (!negate && !reader_.At("!")) return Primary();
    if (++depth_ > kMaxExprDepth) return TooDeep();
    reader_.Next();
    GC_ASSIGN_OR_RETURN(Node node, Unary());
    --depth_;
    Node unary{{.op = negate ? Op::kNegate : Op::kNot}, node.height + 1};
    unary.expr.args.push_back(std::move(node.expr));
    return Checked(std::move(unary));
  }

  absl::StatusOr<Node> Primary() {
    const Token& token = reader_.Peek();
    switch (token.kind) {
      case Kind::kInt:
        return Int();
      case Kind::kVariable:
        return Node{{.op = Op::kName, .name = std::string(reader_.Next().text)}};
      case Kind::kName:
        return Name();
      default:
        break;
    }
    if (!reader_.At("(")) return reader_.Want("an expression");
    if (++depth_ > kMaxExprDepth) return TooDeep();
    reader_.Next();
    GC_ASSIGN_OR_RETURN(Node node, Whole());
    --depth_;
    GC_RETURN_IF_ERROR(reader_.Eat(")"));
    return node;
  }

  absl::StatusOr<Node> Int() {
    Node node;
    if (!absl::SimpleAtoi(reader_.Peek().text, &node.expr.value)) {
      return reader_.Want("a whole number below 2^63");
    }
    reader_.Next();
    return node;
  }

  absl::StatusOr<Node> Name() {
    const absl::string_view name = reader_.Peek().text;
    if (IsFunction(name) && reader_.AtAhead(1, "(")) return Call();
    if (const std::optional<DType> dtype = ParseDType(name)) {
      reader_.Next();
      return Node{{.op = Op::kDType, .dtype = *dtype}};
    }
    if (reader_.AtAhead(1, "(")) return reader_.Want("a function of the language");
    GC_ASSIGN_OR_RETURN(std::string plain, reader_.EatName("an expression"));
    return Node{{.op = Op::kName, .name = std::move(plain)}};
  }

  absl::StatusOr<Node> Call() {
    if (++depth_ > kMaxExprDepth) return TooDeep();
    Node call{{.op = Op::kCall, .name = std::string(reader_.Next().text)}};
    GC_RETURN_IF_ERROR(reader_.Eat("("));
    do {
      GC_ASSIGN_OR_RETURN(Node argument, Whole());
      call.height = std::max(call.height, argument.height + 1);
      call.expr.args.push_back(std::move(argument.expr));
    } while (reader_.TryEat(","));
    --depth_;
    GC_RETURN_IF_ERROR(reader_.Eat(")"));
    return Checked(std::move(call));
  }

  static absl::Status TooDeep() {
    return absl::InvalidArgumentError(
        absl::StrCat("an expression is more than ", kMaxExprDepth, " levels deep"));
  }

  static absl::StatusOr<Node> Checked(Node node) {
    if (node.height > kMaxExprDepth) return TooDeep();
    return node;
  }

  TokenReader& reader_;
  int depth_ = 0;
};

int HeightOf(const Expr& expr) {
  int height = 0;
  for (const Expr& arg : expr.args) height = std::max(height, HeightOf(arg));
  return height + 1;
}

}  // namespace

absl::StatusOr<Expr> ReadExpr(TokenReader& reader) {
  GC_ASSIGN_OR_RETURN(Node node, ExprParser(reader).Whole());
  return std::move(node.expr);
}

absl::StatusOr<Expr> ReadOr(TokenReader& reader) {
  GC_ASSIGN_OR_RETURN(Node node, ExprParser(reader).Level(kOrLevel));
  return std::move(node.expr);
}

absl::StatusOr<Expr> ReadChoice(Expr condition, TokenReader& reader) {
  const int height = HeightOf(condition);
  GC_ASSIGN_OR_RETURN(Node node, ExprParser(reader).Choice({std::move(condition), height}));
  return std::move(node.expr);
}

absl::StatusOr<Expr> ParseExpr(absl::string_view text) {
  GC_ASSIGN_OR_RETURN(TokenReader reader, TokenReader::Create(text));
  GC_ASSIGN_OR_RETURN(Expr expr, ReadExpr(reader));
  if (!reader.AtEnd()) return reader.Want("the end of the expression");
  return expr;
}

}  // namespace gridclock
