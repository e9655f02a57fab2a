#include "proto/types/expression.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class Table final : public Scope {
 public:
  Table() = default;
  Table(std::initializer_list<std::pair<const std::string, Value>> values) : values_(values) {}

  absl::StatusOr<Value> Lookup(absl::string_view name) const override {
    const auto found = values_.find(std::string(name));
    if (found != values_.end()) return found->second;
    return absl::InvalidArgumentError(absl::StrCat("unbound name '", name, "'"));
  }
  absl::StatusOr<std::int64_t> Measure(absl::string_view function, absl::string_view name,
                                       std::int64_t index) const override {
    if (function == "dim") return 100 + index;
    if (name == "x") return 7;
    return absl::InvalidArgumentError(absl::StrCat("unbound name '", name, "'"));
  }

 private:
  std::map<std::string, Value> values_;
};

absl::StatusOr<std::int64_t> Int(const char* text, const Table& table = {}) {
  GC_ASSIGN_OR_RETURN(const Expr expr, ParseExpr(text));
  return EvaluateInt(expr, table);
}

absl::StatusOr<bool> Bool(const char* text, const Table& table = {}) {
  GC_ASSIGN_OR_RETURN(const Expr expr, ParseExpr(text));
  return EvaluateBool(expr, table);
}

TEST(Expression, BindsTighterFurtherRight) {
  EXPECT_EQ(*Int("2 + 3 * 4"), 14);
  EXPECT_EQ(*Int("(2 + 3) * 4"), 20);
  EXPECT_EQ(*Int("10 - 4 - 3"), 3);
  EXPECT_EQ(*Int("-2 * 3"), -6);
  EXPECT_EQ(*Int("1 < 2 ? 5 : 6"), 5);
  EXPECT_EQ(*Int("false_ ? 1 : 1 > 2 ? 3 : 4", {{"false_", false}}), 4);
  EXPECT_TRUE(*Bool("1 + 1 == 2 && !(2 < 1) || 1 == 2"));
}

TEST(Expression, DividesTowardMinusInfinity) {
  EXPECT_EQ(*Int("7 / 2"), 3);
  EXPECT_EQ(*Int("-7 / 2"), -4);
  EXPECT_EQ(*Int("7 / -2"), -4);
  EXPECT_EQ(*Int("-7 / -2"), 3);
  EXPECT_EQ(*Int("-7 % 2"), 1);
  EXPECT_EQ(*Int("7 % -2"), -1);
  EXPECT_EQ(*Int("ceil_div(7, 2)"), 4);
  EXPECT_EQ(*Int("ceil_div(-7, 2)"), -3);
  EXPECT_EQ(*Int("ceil_div(8, 2)"), 4);
}

TEST(Expression, ComputesItsFunctions) {
  EXPECT_EQ(*Int("min(3, 1, 2)"), 1);
  EXPECT_EQ(*Int("max(3, 1, 2)"), 3);
  EXPECT_EQ(*Int("next_pow2(0)"), 1);
  EXPECT_EQ(*Int("next_pow2(1000)"), 1024);
  EXPECT_EQ(*Int("next_pow2(1024)"), 1024);
  EXPECT_EQ(*Int("sizeof(f64)"), 8);
  EXPECT_EQ(*Int("sizeof(T)", {{"T", DType::kBF16}}), 2);
  EXPECT_EQ(*Int("numel(x)"), 7);
  EXPECT_EQ(*Int("dim(x, 1 + 1)"), 102);
}

TEST(Expression, RefusesOverflowOfEveryOperator) {
  for (const char* text :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "4611686018427387904 * 2",
        "(-9223372036854775807 - 1) / -1", "-(-9223372036854775807 - 1)",
        "ceil_div(-9223372036854775807 - 1, -1)", "next_pow2(4611686018427387905)"}) {
    EXPECT_THAT(Int(text), StatusIs(kInvalid, HasSubstr("overflow of 64 bits"))) << text;
  }
  EXPECT_EQ(*Int("(-9223372036854775807 - 1) % -1"), 0);
  EXPECT_EQ(*Int("next_pow2(4611686018427387904)"), 4611686018427387904);
}

TEST(Expression, RefusesDivisionByZeroAndQuotesIt) {
  const Table table{{"N", std::int64_t{0}}};
  EXPECT_THAT(Int("6 / N", table), StatusIs(kInvalid, "in '6 / N': division by zero"));
  EXPECT_THAT(Int("6 % N", table), StatusIs(kInvalid, HasSubstr("division by zero")));
  EXPECT_THAT(Int("ceil_div(6, N)", table), StatusIs(kInvalid, HasSubstr("division by zero")));
}

TEST(Expression, LooksOnlyAtTheSideItNeeds) {
  const Table table{{"N", std::int64_t{0}}};
  EXPECT_FALSE(*Bool("N > 0 && 6 / N > 1", table));
  EXPECT_TRUE(*Bool("N == 0 || 6 / N > 1", table));
  EXPECT_EQ(*Int("N == 0 ? 1 : 6 / N", table), 1);
}

TEST(Expression, ComparesKindsOnlyWithTheirOwn) {
  const Table table{
      {"eps", 0.5},       {"mode", std::string("tanh")},           {"tanh", std::string("tanh")},
      {"T", DType::kF16}, {"big", std::int64_t{9007199254740993}}, {"near", 9007199254740992.0}};
  EXPECT_TRUE(*Bool("eps < 1", table));
  EXPECT_TRUE(*Bool("mode == tanh", table));
  EXPECT_TRUE(*Bool("T == f16 && T != f32", table));
  EXPECT_FALSE(*Bool("big == near", table)) << "2^53 + 1 is not 2^53";
  EXPECT_THAT(Bool("mode == 1", table),
              StatusIs(kInvalid, HasSubstr("cannot compare a word with a whole number")));
  EXPECT_THAT(Bool("T < f32", table), StatusIs(kInvalid, HasSubstr("cannot compare a dtype")));
  EXPECT_THAT(Int("eps + 1", table), StatusIs(kInvalid, HasSubstr("got an f64")));
  EXPECT_THAT(Bool("1 && 2"), StatusIs(kInvalid, HasSubstr("want a truth value")));
  EXPECT_THAT(Int("K"), StatusIs(kInvalid, "in 'K': unbound name 'K'"));
}

TEST(Expression, PrintsTextThatParsesBack) {
  for (const char* text : {"2*numel(c)*K", "a - (b - c)", "(a + b)*c", "-(a + b)", "--a",
                           "!(a && b) || c", "(a ? b : c) ? d : e ? f : g", "(a < b) == (c < d)",
                           "dim(x, -1)", "a % (b*c) / 2", "min(a, b ? 1 : 2) + sizeof(f32)"}) {
    ASSERT_OK_AND_ASSIGN(const Expr expr, ParseExpr(text));
    EXPECT_EQ(ToText(expr), text);
    EXPECT_EQ(*ParseExpr(ToText(expr)), expr);
  }
}

TEST(Expression, SaysWhereItCannotBeRead) {
  EXPECT_THAT(ParseExpr("2 +"), StatusIs(kInvalid, "at '+': want an expression, got the end"));
  EXPECT_THAT(ParseExpr("(a"), StatusIs(kInvalid, HasSubstr("want ')'")));
  EXPECT_THAT(ParseExpr("a b"), StatusIs(kInvalid, HasSubstr("want the end")));
  EXPECT_THAT(ParseExpr("a < b < c"), StatusIs(kInvalid, HasSubstr("got '<'")));
  EXPECT_THAT(ParseExpr("f(1)"), StatusIs(kInvalid, HasSubstr("want a function")));
  EXPECT_THAT(ParseExpr("1.5"), StatusIs(kInvalid, HasSubstr("want an expression, got '1.5'")));
  EXPECT_THAT(ParseExpr("9223372036854775808"), StatusIs(kInvalid, HasSubstr("below 2^63")));
  EXPECT_THAT(ParseExpr("2K"), StatusIs(kInvalid, HasSubstr("no token")));
  EXPECT_THAT(ParseExpr("a $ b"), StatusIs(kInvalid, HasSubstr("at '$ b': this is no token")));
  EXPECT_THAT(ParseExpr("where"), StatusIs(kInvalid, HasSubstr("no reserved word")));
  EXPECT_THAT(ParseExpr(""), StatusIs(kInvalid, HasSubstr("got the end")));
}

TEST(Expression, RefusesTreesThatAreTooHigh) {
  const auto nested = [](int n) { return std::string(n, '(') + "1" + std::string(n, ')'); };
  EXPECT_THAT(ParseExpr(nested(60)), IsOk());
  EXPECT_THAT(ParseExpr(nested(70)), StatusIs(kInvalid, HasSubstr("64 levels deep")));
  std::string chain = "1";
  for (int i = 0; i < 70; ++i) chain += "+1";
  EXPECT_THAT(ParseExpr(chain), StatusIs(kInvalid, HasSubstr("64 levels deep")));
  EXPECT_THAT(ParseExpr(std::string(70, '-') + "1"), StatusIs(kInvalid, HasSubstr("deep")));
  EXPECT_THAT(ParseExpr(std::string(17 * 1024, ' ')), StatusIs(kInvalid, HasSubstr("16384")));
}

}  // namespace
}  // namespace gridclock
