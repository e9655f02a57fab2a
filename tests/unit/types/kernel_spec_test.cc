#include "proto/types/kernel_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/types/catalogue_words.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CatalogueWords : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, CatalogueWords, ::testing::ValuesIn(kCatalogueWords));

TEST_P(CatalogueWords, ParseAndComeBackFromText) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec(GetParam()));
  EXPECT_THAT(Validate(spec), IsOk());
  ASSERT_OK_AND_ASSIGN(const KernelSpec again, ParseKernelSpec(ToText(spec)));
  EXPECT_EQ(again, spec) << ToText(spec);
}

TEST(KernelSpec, HoldsWhatTheWordsSay) {
  ASSERT_OK_AND_ASSIGN(
      const KernelSpec spec,
      ParseKernelSpec("mix inout p: f32[*]..., g: T[N]  # a comment\n"
                      "-> y: to[N] over g; to: dtype = f16, eps: f64 = 1e-5 in (0, 1], "
                      "n: i64 in {1, -2}, mode: {tanh, none} where T in {f32, f16}, N >= 1 "
                      "flops 2*N bytes 7"));
  ASSERT_EQ(spec.inputs.size(), 2u);
  EXPECT_TRUE(spec.inputs[0].inout);
  EXPECT_TRUE(spec.inputs[0].is_list);
  EXPECT_EQ(spec.inputs[1].elem, "T");
  EXPECT_EQ(spec.outputs[0].over, "g");
  ASSERT_EQ(spec.attributes.size(), 4u);
  EXPECT_EQ(spec.attributes[0].default_value, AttributeValue(DType::kF16));
  EXPECT_EQ(spec.attributes[1].range->high, 1.0);
  EXPECT_TRUE(spec.attributes[1].range->low_open);
  EXPECT_EQ(spec.attributes[2].allowed[1], AttributeValue(std::int64_t{-2}));
  EXPECT_FALSE(spec.attributes[3].default_value);
  EXPECT_EQ(spec.conditions[0].dtypes[1], DType::kF16);
  EXPECT_EQ(ToText(*spec.conditions[1].expr), "N >= 1");
}

TEST(KernelSpec, KeepsTheBoundsOfAnI64Exactly) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                       ParseKernelSpec("k; n: i64 in [-9223372036854775808, 9223372036854775807), "
                                       "m: i64 in (-inf, inf)"));
  EXPECT_EQ(spec.attributes[0].range->low_int, INT64_MIN);
  EXPECT_EQ(spec.attributes[0].range->high_int, INT64_MAX);
  EXPECT_EQ(ToText(spec.attributes[0]), "n: i64 in [-9223372036854775808, 9223372036854775807)");
  EXPECT_EQ(ToText(spec.attributes[1]), "m: i64 in (-inf, inf)");
}

TEST(KernelSpec, ParsesTheClausesOfASubmittedKernel) {
  const std::string text =
      "grid (ceil_div(W, 16), ceil_div(H, 16)) block (16, 16) cluster (1) scratch t: f32[W] "
      "params x align 16, y, t, width: int = W multiple 16, height: int64 = H, null";
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec,
                       ParseKernelSpec("k x: f32[H, W] -> y: f32[H, W] " + text));
  EXPECT_EQ(ToText(spec.clauses), text);
  EXPECT_EQ(spec.clauses.params[0].promise, 16);
  EXPECT_EQ(spec.clauses.params[5].kind, ParamSpec::Kind::kNull);
  ASSERT_OK_AND_ASSIGN(const Clauses alone, ParseClauses(text));
  EXPECT_EQ(alone, spec.clauses);
  EXPECT_THAT(ParseKernelSpec("k a: f32[*]... -> c: f32[*]... grid (count(a)) shared 1024 "
                              "params table(a), pointers(c), sizes(a), n: int = count(a)"),
              IsOk());
}

TEST(KernelSpec, AllEnumsTogetherHaveSixtyFourWords) {
  std::string words = "k; a: {w0";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&words, ", w", i);
  words += "}, b: {w0";
  for (int i = 1; i < 32; ++i) absl::StrAppend(&words, ", w", i);
  EXPECT_THAT(ParseKernelSpec(words + "}"), IsOk());
  EXPECT_THAT(ParseKernelSpec(words + ", w32}"),
              StatusIs(kInvalid, HasSubstr("at most 64 words of enums, got 65")));
}

struct Bad {
  const char* words;
  const char* message;
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.words;
}
class BadWords : public ::testing::TestWithParam<Bad> {};

TEST_P(BadWords, AreRefusedWithTheReason) {
  EXPECT_THAT(ParseKernelSpec(GetParam().words), StatusIs(kInvalid, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Grammar, BadWords,
    ::testing::Values(
        Bad{"", "want the name of the kernel, got the end"},
        Bad{"X x: T[*]", "want the name of the kernel, got 'X'"},
        Bad{"k x: T[K]]", "at ']]': want a clause or the end, got ']'"},
        Bad{"k a: T[*, ta ? [K, M] [M, K]]; ta: bool = false", "at '] [': want ':', got '['"},
        Bad{"k where: T[*]", "got"}, Bad{"k in: T[*]", "no reserved word, got 'in'"},
        Bad{"k x: where[*]", "want a dtype, a dtype variable or an attribute"},
        Bad{"k x: T[*", "want ']', got the end"}, Bad{"k x: T[,]", "want an expression, got ','"},
        Bad{"k; a: i64 = 1.5", "want a whole number of 64 bits, got '1.5'"},
        Bad{"k; a: i64 = 9223372036854775808", "want a whole number of 64 bits"},
        Bad{"k; a: bool = 1", "want true or false, got '1'"},
        Bad{"k; a: dtype = tanh", "want a dtype, got 'tanh'"},
        Bad{"k; a: bool in [0, 1]", "a range is for i64 and f64"},
        Bad{"k; a: str", "want i64, f64, bool, dtype or words in braces, got 'str'"},
        Bad{"k; a: f64 in [0, 1", "want ']' or ')', got the end"},
        Bad{"k; a: i64 = 1 flops 1 flops 2", "want one clause 'flops' alone"},
        Bad{"k x: f32[N] params x align 0", "want a number above 0"},
        Bad{"k params n: string = 1", "want int, unsigned, int64"},
        Bad{"k where T in {f32, q}", "want a dtype, got 'q'"}, Bad{"k \x01", "'\\001'"}));

INSTANTIATE_TEST_SUITE_P(
    Rules, BadWords,
    ::testing::Values(
        // Names.
        Bad{"k x: T[*], x: T[*]", "two things are called 'x'"},
        Bad{"k x: T[*]; x: i64 = 1", "two things are called 'x'"},
        Bad{"k x: T[*]; mode: {x, y}", "'x' is a word and the name of something else"},
        Bad{"k; mode: {a, a}", "the word 'a' stands twice"},
        Bad{"k; sm: i64 = 1", "nothing can be called 'sm'"},
        Bad{"k x: T[T]", "'T' is a dimension and something else"},
        Bad{"k x: f32[*A, A]", "'A' is a dimension and something else"},
        // Rule 1: what is bound when.
        Bad{"k x: to[*]; to: i64 = 1", "want a dtype, a dtype variable or an attribute"},
        Bad{"k -> y: T[3]", "no input binds the dtype T"}, Bad{"k x: T[2*N]", "unbound name 'N'"},
        Bad{"k x: T[M] -> y: T[N]", "unbound name 'N'"}, Bad{"k -> y: f32[*]", "no input binds *"},
        Bad{"k x: f32[*] flops M", "unbound name 'M'"},
        Bad{"k x: T[N > 1 ? [N] : [N, N]]", "unbound name 'N'"},
        Bad{"k x: T[t ? [N] : [M]] -> y: T[N]; t: bool = false", "unbound name 'N'"},
        Bad{"k x: T[N] where U in {f32}", "no input has the dtype 'U'"},
        // Rule 2: runs.
        Bad{"k x: T[*A, N, *B]", "two runs of unknown length"},
        Bad{"k x: T[N, *]", "an anonymous '*' stands first"},
        Bad{"k x: T[*, N, *]", "an anonymous '*' stands first"},
        Bad{"k x: T[M @ i, N @ j]; i: i64 = 0, j: i64 = 1", "at most one '@'"},
        Bad{"k x: T[*A, *B, N @ i]; i: i64 = 0", "two runs of unknown length"},
        Bad{"k x: T[N @ i]; i: f64 = 0", "want an attribute of type i64, got 'i'"},
        Bad{"k x: T[*A] -> y: T[*swap(B, i, j)]; i: i64 = 0, j: i64 = 1",
            "no input binds the run *B"},
        // Rule 4: lists.
        Bad{"k a: T[*]..., b: T[*]", "'*' is bound by a list and by an operand that is none"},
        Bad{"k a: T[N]... -> c: T[N]", "unbound name 'N'"},
        Bad{"k a: T[N] -> c: T[N]...", "a list of outputs needs a list of inputs"},
        Bad{"k a: T[N]... flops N", "unbound name 'N'"},
        Bad{"k a: T[N]... flops rank(a)", "rank wants one tensor, 'a' is a list"},
        // Rule 5: inout and over.
        Bad{"k x: T[*] -> inout y: T[*]", "'inout' is for inputs"},
        Bad{"k x: T[*] over x", "'over' is for outputs"},
        Bad{"k x: T[*] -> y: T[*] over z", "no input is called 'z'"},
        Bad{"k inout x: T[*] -> y: T[*] over x", "'x' is returned itself"},
        Bad{"k x: T[*] -> y: T[*] over x, z: T[*] over x", "two outputs lie over 'x'"},
        // Attributes.
        Bad{"k; e: f64 = 2 in (0, 1]", "attribute 'e': want f64 in (0, 1], got 2"},
        Bad{"k; e: f64 = inf", "got inf"}, Bad{"k; e: f64 in [2, 1]", "the range is empty"},
        Bad{"k; n: i64 = 3 in {1, 2}", "want i64 in {1, 2}, got 3"},
        Bad{"k; m: {a, b} = c", "want one of {a, b}, got 'c'"},
        // Kinds.
        Bad{"k x: T[*] flops T", "want a whole number, got a dtype"},
        Bad{"k x: T[N] where N + 1", "want a truth value, got a whole number"},
        Bad{"k x: T[*]; p: f64 = 2 flops p*2", "want a whole number, got an f64"},
        Bad{"k x: T[*] flops numel(z)", "unbound name 'z'"},
        Bad{"k x: T[*] flops numel(1)", "numel wants the name of an operand"},
        Bad{"k x: T[*] flops ceil_div(1)", "ceil_div takes 2 arguments, got 1"},
        Bad{"k x: T[N] flops sm", "unbound name 'sm'"},
        // Geometry and parameters.
        Bad{"k grid (1, 1, 1, 1)", "at most 3 dimensions"},
        Bad{"k params x", "no operand is called 'x'"},
        Bad{"k x: T[*] params table(x)", "'x' is no list"},
        Bad{"k a: T[*]... params a", "'a' is a list"},
        Bad{"k x: T[N] scratch x: T[N]", "no scratch can be called 'x'"},
        Bad{"k a: T[N]... scratch t: f32[1]...", "scratch is one plain tensor"}));

TEST(KernelSpec, LetsAWhenSeeTheDeviceAndTheWords) {
  EXPECT_THAT(ParseKernelSpec("k x: T[*, N]; mode: {tanh, none} = tanh "
                              "when N % 4 == 0 && sm >= 90 && mode == tanh"),
              IsOk());
}

TEST(KernelSpec, TakesASecondRunOnceTheFirstIsKnown) {
  EXPECT_THAT(ParseKernelSpec("k x: T[*A], y: T[*A, *B] -> z: T[*B]"), IsOk());
}

TEST(KernelSpec, ChecksItsVariants) {
  ASSERT_OK_AND_ASSIGN(KernelSpec spec, ParseKernelSpec(kSquare));
  spec.variants = {{.name = "naive", .device_kind = "cpu", .summary = "", .clauses = {}},
                   {.name = "naive", .device_kind = "cuda", .summary = "", .clauses = {}}};
  EXPECT_THAT(Validate(spec), IsOk());
  spec.variants[1].device_kind = "cpu";
  EXPECT_THAT(Validate(spec), StatusIs(kInvalid, HasSubstr("stands twice on cpu")));
  spec.variants[1].device_kind = "tpu";
  EXPECT_THAT(Validate(spec), StatusIs(kInvalid, HasSubstr("cpu or cuda, got 'tpu'")));
  spec.variants.pop_back();
  spec.variants[0].clauses.flops = *ParseExpr("1");
  EXPECT_THAT(Validate(spec), StatusIs(kInvalid, HasSubstr("the same for all variants")));
}

TEST(KernelSpec, RefusesChoicesThatExplode) {
  std::string dims = "N";
  for (int i = 0; i < 7; ++i) dims += ", t ? [1] : [2]";
  EXPECT_THAT(ParseKernelSpec("k x: T[" + dims + "]; t: bool = false"),
              StatusIs(kInvalid, HasSubstr("more than 64 alternatives")));
}

TEST(KernelSpec, TellsTheSameWords) {
  const KernelSpec a = *ParseKernelSpec(kVectorAdd);
  KernelSpec b = a;
  b.summary = "another";
  b.variants.push_back({.name = "simd", .device_kind = "cpu", .summary = "", .clauses = {}});
  EXPECT_TRUE(SameWords(a, b));
  b.clauses.flops = *ParseExpr("2*numel(c)");
  EXPECT_FALSE(SameWords(a, b));
}

}  // namespace
}  // namespace gridclock
