#include "proto/types/binding.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/types/attribute.h"
#include "proto/types/quote.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/types/catalogue_words.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
using Inputs = std::vector<std::pair<const char*, const char*>>;
using Attributes = std::vector<NamedAttribute>;
constexpr std::int64_t operator""_i(unsigned long long value) {
  return static_cast<std::int64_t>(value);
}

// "f32[3]" is a tensor, "f32[3] f32[4]" with `...` before it a list: "... f32[3] f32[4]".
OperandValue Operand(std::string text) {
  OperandValue value;
  if (text.rfind("...", 0) == 0) {
    value.is_list = true;
    text.erase(0, 3);
  }
  std::size_t at = 0;
  while ((at = text.find_first_not_of(' ', at)) != std::string::npos) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    value.tensors.push_back(*ParseTensorSpec(text.substr(at, end - at)));
    at = end;
  }
  return value;
}

// What a call of `words` gives: its outputs as text, "c: f32[2,3]; d: f32[1] f32[2]".
absl::StatusOr<std::string> Call(const char* words, const Inputs& inputs,
                                 const Attributes& attributes = {}) {
  GC_ASSIGN_OR_RETURN(const KernelSpec spec, ParseKernelSpec(words));
  std::vector<NamedOperand> operands;
  for (const auto& [name, text] : inputs) operands.push_back({name, Operand(text)});
  GC_ASSIGN_OR_RETURN(const Binding binding, Bind(spec, operands, attributes));
  std::string text;
  for (const OperandValue& output : binding.outputs) {
    if (!text.empty()) text += "; ";
    for (std::size_t i = 0; i < output.tensors.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "" : " ", ToText(output.tensors[i]));
    }
  }
  return text;
}

struct Good {
  const char* words;
  Inputs inputs;
  Attributes attributes;
  const char* outputs;
};
void PrintTo(const Good& good, std::ostream* out) {
  *out << good.words << " -> " << good.outputs;
}
class GoodCalls : public ::testing::TestWithParam<Good> {};

TEST_P(GoodCalls, HaveTheseOutputs) {
  ASSERT_OK_AND_ASSIGN(const std::string outputs,
                       Call(GetParam().words, GetParam().inputs, GetParam().attributes));
  EXPECT_EQ(outputs, GetParam().outputs);
}

const Inputs kFour = {{"p", "...f32[3] f32[2,2]"},
                      {"g", "...f32[3] f32[2,2]"},
                      {"m", "...f32[3] f32[2,2]"},
                      {"v", "...f32[3] f32[2,2]"}};

INSTANTIATE_TEST_SUITE_P(
    Catalogue, GoodCalls,
    ::testing::Values(
        Good{kVectorAdd, {{"a", "f32[3,5]"}, {"b", "f32[3,5]"}}, {}, "f32[3,5]"},
        Good{kVectorAdd, {{"b", "f16[]"}, {"a", "f16[]"}}, {}, "f16[]"},
        Good{kSquare, {{"x", "bf16[0,7]"}}, {}, "bf16[0,7]"},
        Good{kPow, {{"x", "f64[2]"}}, {{"exponent", 3_i}}, "f64[2]"},
        Good{kGelu, {{"x", "f32[2]"}}, {{"approximate", std::string("none")}}, "f32[2]"},
        Good{kScale, {{"x", "f32[2]"}}, {{"factor", -0.0}}, "f32[2]"},
        Good{kCast, {{"x", "u8[4]"}}, {{"to", DType::kF8E4M3}}, "f8e4m3[4]"},
        Good{kCast, {{"x", "u8[4]"}}, {}, "f32[4]"},
        Good{kSoftmax, {{"x", "f32[1024]"}}, {}, "f32[1024]"},
        Good{kSoftmax, {{"x", "f32[8,0]"}}, {}, "f32[8,0]"},
        Good{kLayernorm,
             {{"x", "f32[2,3,8]"}, {"weight", "f32[8]"}, {"bias", "f32[8]"}},
             {},
             "f32[2,3,8]"},
        Good{kRmsnorm, {{"x", "f32[8]"}, {"weight", "f32[8]"}}, {}, "f32[8]"},
        Good{kSum, {{"x", "f32[2,3,4]"}}, {{"axis", 1_i}}, "f32[2,4]"},
        Good{kSum, {{"x", "f32[2,3,4]"}}, {{"axis", -3_i}}, "f32[3,4]"},
        Good{kSum, {{"x", "f32[2,3,4]"}}, {}, "f32[2,3]"},
        Good{kSum, {{"x", "f32[9]"}}, {}, "f32[]"}, Good{kSum, {{"x", "f32[5,0]"}}, {}, "f32[5]"},
        Good{kMax, {{"x", "f32[5,1]"}}, {}, "f32[5]"},
        Good{kArgmax, {{"x", "f32[5,6]"}}, {{"axis", 0_i}}, "i64[6]"},
        Good{kCumsum, {{"x", "f32[2,3,4]"}}, {{"axis", 1_i}}, "f32[2,3,4]"},
        Good{kTranspose, {{"x", "i8[2,3,4]"}}, {{"i", 0_i}, {"j", 2_i}}, "i8[4,3,2]"},
        Good{kTranspose, {{"x", "i8[2,3,4]"}}, {{"i", 1_i}, {"j", 1_i}}, "i8[2,3,4]"},
        Good{kMatmul, {{"a", "f32[2,3]"}, {"b", "f32[3,4]"}}, {}, "f32[2,4]"},
        Good{kMatmul,
             {{"a", "f32[9,3,2]"}, {"b", "f32[9,4,3]"}},
             {{"ta", true}, {"tb", true}},
             "f32[9,2,4]"},
        Good{kMatmul, {{"a", "f32[0,3]"}, {"b", "f32[3,4]"}}, {}, "f32[0,4]"},
        Good{kMatmulBiasGelu,
             {{"a", "f32[2,3]"}, {"b", "f32[3,4]"}, {"bias", "f32[4]"}},
             {},
             "f32[2,4]"},
        Good{kCdist, {{"a", "f32[8,3]"}, {"b", "f32[9,3]"}}, {{"p", 1_i}}, "f32[8,9]"},
        Good{kForeachAdd,
             {{"a", "...f32[3] f32[4,4]"}, {"b", "...f32[3] f32[4,4]"}},
             {},
             "f32[3] f32[4,4]"},
        Good{kForeachMul, {{"a", "...f16[]"}, {"b", "...f16[]"}}, {}, "f16[]"},
        Good{kSgd, {{"p", "...f32[3]"}, {"g", "...f32[3]"}}, {}, "f32[3]"},
        Good{kAdam, kFour, {}, "f32[3] f32[2,2]; f32[3] f32[2,2]; f32[3] f32[2,2]"},
        Good{kAdamw, kFour, {{"lr", 0.01}}, "f32[3] f32[2,2]; f32[3] f32[2,2]; f32[3] f32[2,2]"},
        Good{kEmpty, {}, {}, ""}, Good{kCopy, {{"x", "bool[2]"}}, {}, "bool[2]"},
        Good{kSpin, {}, {{"ns", 5000_i}}, ""},
        Good{kFault, {}, {{"kind", std::string("trap")}}, ""}));

INSTANTIATE_TEST_SUITE_P(
    Language, GoodCalls,
    ::testing::Values(
        Good{"k x: T[2*N], z: T[N] -> y: T[N]", {{"x", "f32[8]"}, {"z", "f32[4]"}}, {}, "f32[4]"},
        Good{"k x: T[*A, N], y: T[*A, *B] -> z: T[*B, N]",
             {{"x", "f32[2,3]"}, {"y", "f32[2,5,6]"}},
             {},
             "f32[5,6,3]"},
        Good{"k -> y: f32[n, 2]; n: i64 = 4", {}, {{"n", 7_i}}, "f32[7,2]"},
        Good{"k x: T[M, N] -> y: T[t ? N : M]; t: bool = false",
             {{"x", "f32[2,3]"}},
             {{"t", true}},
             "f32[3]"},
        Good{"k x: T[*A], y: T[*swap(A, i, j)] -> z: T[numel(A)]; i: i64 = 0, j: i64 = -1",
             {{"x", "f32[2,3]"}, {"y", "f32[3,2]"}},
             {},
             "f32[6]"},
        Good{"k x: T[*A, N @ axis, *B] -> y: T[*A, N @ axis, *B]; axis: i64 = 0",
             {{"x", "f32[2,3]"}},
             {},
             "f32[2,3]"},
        Good{"k a: T[N]... -> c: T[2*N]...", {{"a", "...f32[1] f32[2]"}}, {}, "f32[2] f32[4]"},
        Good{"k x: T[N] -> y: T[dim(x, -1) * rank(x) * sizeof(T)]",
             {{"x", "f16[5]"}},
             {},
             "f16[10]"}));

struct Bad {
  const char* words;
  Inputs inputs;
  Attributes attributes;
  const char* message;
  const char* field;
};
void PrintTo(const Bad& bad, std::ostream* out) {
  *out << bad.words << ": " << bad.message;
}
class BadCalls : public ::testing::TestWithParam<Bad> {};

TEST_P(BadCalls, SayWhatWasWantedAndWhatCame) {
  const auto outputs = Call(GetParam().words, GetParam().inputs, GetParam().attributes);
  EXPECT_THAT(outputs, StatusIs(kInvalid, HasSubstr(GetParam().message)));
  EXPECT_EQ(DetailsOf(outputs.status()).field, GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Names, BadCalls,
    ::testing::Values(
        Bad{kVectorAdd,
            {{"a", "f32[3]"}},
            {},
            "expected inputs ['a','b']; missing ['b']",
            "inputs"},
        Bad{kVectorAdd,
            {{"a", "f32[3]"}, {"b", "f32[3]"}, {"c\n", "f32[3]"}},
            {},
            "expected inputs ['a','b']; unexpected ['c\\n']",
            "inputs"},
        Bad{kVectorAdd,
            {{"a", "f32[3]"}, {"a", "f32[3]"}},
            {},
            "expected inputs ['a','b']; missing ['b']; given twice ['a']",
            "inputs"},
        Bad{kEmpty, {{"x", "f32[3]"}}, {}, "expected inputs []; unexpected ['x']", "inputs"},
        Bad{kSquare, {{"x", "...f32[3]"}}, {}, "'x': want one tensor, got a list", "inputs.x"},
        Bad{kForeachAdd,
            {{"a", "f32[3]"}, {"b", "f32[3]"}},
            {},
            "'a': want a list, got one tensor",
            "inputs.a"},
        Bad{kForeachAdd, {{"a", "..."}, {"b", "..."}}, {}, "at least one tensor", "inputs.a"}));

INSTANTIATE_TEST_SUITE_P(
    Attributes, BadCalls,
    ::testing::Values(
        Bad{kScale,
            {{"x", "f32[3]"}},
            {},
            "attribute 'factor' is missing: want f64 in (-inf, inf)",
            "attributes.factor"},
        Bad{kScale,
            {{"x", "f32[3]"}},
            {{"factor", 1.0}, {"factor", 2.0}},
            "attribute 'factor' is given twice",
            "attributes.factor"},
        Bad{kScale,
            {{"x", "f32[3]"}},
            {{"factor", 1.0}, {"q", 2.0}},
            "expected attributes ['factor']; unexpected ['q']",
            "attributes.q"},
        Bad{kScale,
            {{"x", "f32[3]"}},
            {{"factor", std::nan("")}},
            "want f64 in (-inf, inf), got nan",
            "attributes.factor"},
        Bad{kScale,
            {{"x", "f32[3]"}},
            {{"factor", HUGE_VAL}},
            "want f64 in (-inf, inf), got inf",
            "attributes.factor"},
        Bad{kScale,
            {{"x", "f32[3]"}},
            {{"factor", true}},
            "want f64 in (-inf, inf), got true",
            "attributes.factor"},
        Bad{kAdam,
            kFour,
            {{"beta1", 1.0}},
            "attribute 'beta1': want f64 in [0, 1), got 1",
            "attributes.beta1"},
        Bad{kAdam, kFour, {{"lr", std::nan("")}}, "want f64 in [0, inf), got nan", "attributes.lr"},
        Bad{kAdam, kFour, {{"step", 0_i}}, "in [1, 4611686018427387904], got 0", "attributes.step"},
        Bad{kCdist,
            {{"a", "f32[8,3]"}, {"b", "f32[9,3]"}},
            {{"p", 3.0}},
            "attribute 'p': want f64 in {1, 2}, got 3",
            "attributes.p"},
        Bad{kGelu,
            {{"x", "f32[2]"}},
            {{"approximate", std::string("erf")}},
            "want one of {tanh, none}, got 'erf'",
            "attributes.approximate"},
        Bad{kSum,
            {{"x", "f32[2]"}},
            {{"axis", 1.0}},
            "want i64 in [-8, 7], got 1",
            "attributes.axis"}));

INSTANTIATE_TEST_SUITE_P(DTypes, BadCalls,
                         ::testing::Values(Bad{kSquare,
                                               {{"x", "i32[4]"}},
                                               {},
                                               "'x': want T in {f64, f32, f16, bf16}, got i32",
                                               "inputs.x.dtype"},
                                           Bad{kVectorAdd,
                                               {{"a", "f32[4]"}, {"b", "f64[4]"}},
                                               {},
                                               "'b': T is f32 elsewhere, f64 here",
                                               "inputs.b.dtype"},
                                           Bad{kSgd,
                                               {{"p", "...f32[3]"}, {"g", "...f64[3]"}},
                                               {},
                                               "'g[0]': want f32, got f64",
                                               "inputs.g[0].dtype"},
                                           Bad{kForeachAdd,
                                               {{"a", "...f32[3] f16[4]"},
                                                {"b", "...f32[3] f16[4]"}},
                                               {},
                                               "'a[1]': T is f32 elsewhere, f16 here",
                                               "inputs.a[1].dtype"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, BadCalls,
    ::testing::Values(
        Bad{kVectorAdd,
            {{"a", "f32[3,5]"}, {"b", "f32[5]"}},
            {},
            "'b': * is [3,5] elsewhere, [5] here",
            "inputs.b.shape"},
        Bad{kVectorAdd,
            {{"a", "f32[9]"}, {"b", "f32[]"}},
            {},
            "'b': * is [9] elsewhere, [] here",
            "inputs.b.shape"},
        Bad{kSoftmax, {{"x", "f32[]"}}, {}, "'x': want [*, N], got []", "inputs.x.shape"},
        Bad{kLayernorm,
            {{"x", "f32[2,3,8]"}, {"weight", "f32[7]"}, {"bias", "f32[8]"}},
            {},
            "'weight': N is 8 elsewhere, 7 here",
            "inputs.weight.shape"},
        Bad{kSum,
            {{"x", "f32[2,3,4]"}},
            {{"axis", 3_i}},
            "attribute 'axis': 'x' has an axis from -3 to 2 (it has rank 3), got 3",
            "attributes.axis"},
        Bad{kSum, {{"x", "f32[]"}}, {}, "no axis (it has rank 0)", "attributes.axis"},
        Bad{kArgmax, {{"x", "f32[5,0]"}}, {}, "want N >= 1; it does not hold", "inputs"},
        Bad{kTranspose, {{"x", "f32[5]"}}, {}, "has an axis from -1 to 0", "attributes.i"},
        Bad{kMatmul,
            {{"a", "f32[9,2,3]"}, {"b", "f32[3,4]"}},
            {},
            "'b': * is [9] elsewhere, [] here",
            "inputs.b.shape"},
        Bad{kMatmul,
            {{"a", "f32[2,3]"}, {"b", "f32[5,4]"}},
            {},
            "'b': K is 3 elsewhere, 5 here (a is f32[2,3], b is f32[5,4])",
            "inputs.b.shape"},
        Bad{kMatmul,
            {{"a", "f32[3]"}, {"b", "f32[3]"}},
            {},
            "'a': want [*, M, K], got [3]",
            "inputs.a.shape"},
        Bad{kMatmul,
            {{"a", "f32[3]"}, {"b", "f32[3]"}},
            {{"ta", true}},
            "'a': want [*, K, M], got [3]",
            "inputs.a.shape"},
        Bad{kForeachAdd,
            {{"a", "...f32[3] f32[4,4]"}, {"b", "...f32[3] f32[4]"}},
            {},
            "'b[1]': * is [4,4] elsewhere, [4] here",
            "inputs.b[1].shape"},
        Bad{kForeachAdd,
            {{"a", "...f32[3]"}, {"b", "...f32[3] f32[3]"}},
            {},
            "'b': lists have 1 tensors elsewhere, 2 here",
            "inputs.b"},
        Bad{"k x: T[2*N], z: T[N]",
            {{"x", "f32[8]"}, {"z", "f32[3]"}},
            {},
            "'x': '2*N' is 6 elsewhere, 8 here",
            "inputs.x.shape"},
        Bad{"k x: T[*A], y: T[*swap(A, i, j)]; i: i64 = 0, j: i64 = 1",
            {{"x", "f32[2,3]"}, {"y", "f32[2,3]"}},
            {},
            "'y': *A is [3,2] elsewhere, [2,3] here",
            "inputs.y.shape"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, BadCalls,
    ::testing::Values(
        Bad{"k x: T[N] -> y: T[N - 5]",
            {{"x", "f32[3]"}},
            {},
            "output 'y': 'N - 5' is -2; want 0 or more",
            "outputs.y.shape"},
        Bad{"k x: T[N] -> y: T[N / (N - 3)]",
            {{"x", "f32[3]"}},
            {},
            "output 'y': in 'N / (N - 3)': division by zero",
            "outputs.y.shape"},
        Bad{kCdist,
            {{"a", "f32[4294967296,1]"}, {"b", "f32[4294967296,1]"}},
            {},
            "element count overflows",
            "outputs.d.shape"},
        Bad{"k x: T[N] flops N*N*N",
            {{"x", "i8[4G]"}},
            {},
            "flops: in 'N*N*N': overflow of 64 bits",
            "inputs"},
        Bad{"k x: T[N] flops N - 9", {{"x", "f32[3]"}}, {}, "flops: 'N - 9' is -6", "inputs"},
        Bad{"k x: T[*A], y: T[*B] -> z: T[*A, *B]",
            {{"x", "i8[1,1,1,1,1]"}, {"y", "i8[1,1,1,1]"}},
            {},
            "rank 9 is over the maximum",
            "outputs.z.shape"},
        Bad{"k x: T[N] -> y: T[2*N] over x",
            {{"x", "f32[3]"}},
            {},
            "output 'y' is f32[6] and cannot lie over 'x', f32[3]",
            "outputs.y.shape"},
        Bad{"k x: T[N @ a, *B] -> y: T[*B, N @ a]; a: i64 = 0",
            {{"x", "f32[3,4]"}},
            {},
            "N @ a stands at place 1, want 0",
            "outputs.y.shape"}));

TEST(Bind, ChecksShapesThatTextCannotSpell) {
  const KernelSpec spec = *ParseKernelSpec(kSquare);
  const auto bind = [&](Shape shape) {
    return Bind(spec, {{"x", {.is_list = false, .tensors = {{DType::kF32, shape}}}}}, {});
  };
  EXPECT_THAT(bind({3, -1}), StatusIs(kInvalid, HasSubstr("'x': dimension 1 is -1")));
  EXPECT_THAT(bind({1_i << 32, 1_i << 32}), StatusIs(kInvalid, HasSubstr("overflows")));
  EXPECT_THAT(bind(Shape(9, 1)), StatusIs(kInvalid, HasSubstr("rank 9")));
  EXPECT_EQ(DetailsOf(bind({-1}).status()).field, "inputs.x.shape");
}

TEST(Bind, CutsAndEscapesTheNamesOfClients) {
  const KernelSpec spec = *ParseKernelSpec(kEmpty);
  const auto bound = Bind(spec, {}, {{std::string(1000, 'q') + "\x1b", 1.0}});
  ASSERT_FALSE(bound.ok());
  EXPECT_LT(bound.status().message().size(), 160u);
  EXPECT_THAT(bound, StatusIs(kInvalid, HasSubstr("q...'")));
}

TEST(Quote, CutsNoEscapeInTwo) {
  EXPECT_EQ(Escape(std::string(64, 'q')), std::string(64, 'q'));
  EXPECT_EQ(Escape(std::string(58, 'q') + "\xc2\xb5"), std::string(58, 'q') + "...");
  EXPECT_EQ(Escape(std::string(57, 'q') + "\xc2\xb5"), std::string(57, 'q') + "\\302...");
  EXPECT_EQ(Escape(std::string(1000, '\x1b')).size(), 63u);
}

TEST(Bind, GivesEveryNameItsValue) {
  const KernelSpec spec = *ParseKernelSpec(kMatmulBiasGelu);
  ASSERT_OK_AND_ASSIGN(const Binding binding, Bind(spec,
                                                   {{"bias", Operand("f16[4]")},
                                                    {"a", Operand("f16[7,2,3]")},
                                                    {"b", Operand("f16[7,3,4]")}},
                                                   {{"approximate", std::string("none")}}));
  EXPECT_EQ(binding.Dim("M"), 2);
  EXPECT_EQ(binding.Dim("K"), 3);
  EXPECT_EQ(binding.Dim("N"), 4);
  EXPECT_EQ(binding.Run("*"), Shape({7}));
  EXPECT_EQ(binding.Type("T"), DType::kF16);
  EXPECT_FALSE(binding.Bool("ta"));
  EXPECT_EQ(binding.Word("approximate"), "none");
  EXPECT_EQ(binding.flops, 2 * 56 * 3 + 10 * 56);
  EXPECT_EQ(binding.bytes, 2 * (42 + 84 + 4 + 56));
  EXPECT_EQ(ToText(binding.inputs[2].tensors[0]), "f16[4]") << "inputs are in the spec's order";
}

TEST(Bind, CountsWhatInoutReadsAndWrites) {
  const KernelSpec spec = *ParseKernelSpec(kSgd);
  ASSERT_OK_AND_ASSIGN(
      const Binding binding,
      Bind(spec, {{"p", Operand("...f32[3] f32[5]")}, {"g", Operand("...f32[3] f32[5]")}}, {}));
  EXPECT_EQ(binding.bytes, 3 * 8 * 4);
  EXPECT_EQ(binding.flops, 4 * 8);
  EXPECT_EQ(binding.F64("lr"), 1e-3);
}

TEST(Bind, TellsTheScratchOfAVariant) {
  const KernelSpec spec = *ParseKernelSpec(kMatmul);
  const Clauses clauses = *ParseClauses("scratch t: f32[M, next_pow2(N)] scratch u: T[*]");
  ASSERT_OK_AND_ASSIGN(
      const Binding binding,
      Bind(spec, {{"a", Operand("f16[7,2,3]")}, {"b", Operand("f16[7,3,5]")}}, {}));
  ASSERT_OK_AND_ASSIGN(const auto scratch, BindScratch(clauses, binding));
  ASSERT_EQ(scratch.size(), 2u);
  EXPECT_EQ(ToText(scratch[0].tensors[0]), "f32[2,8]");
  EXPECT_EQ(ToText(scratch[1].tensors[0]), "f16[7]");
  const absl::Status status =
      BindScratch(*ParseClauses("scratch t: f32[9223372036854775807]"), binding).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("scratch 't': element")));
  EXPECT_EQ(DetailsOf(status).field, "scratch.t.shape");
}

class Variants : public ::testing::Test {
 protected:
  void SetUp() override {
    spec = *ParseKernelSpec(kSoftmax);
    spec.variants = {{"naive", "cpu", "", {}},
                     {"vec4", "cpu", "", *ParseClauses("when N % 4 == 0")},
                     {"tma", "cuda", "", *ParseClauses("when sm >= 90")}};
    ASSERT_THAT(Validate(spec), IsOk());
  }
  absl::StatusOr<std::string> Choose(const char* shape, DeviceTraits device, const char* wanted) {
    GC_ASSIGN_OR_RETURN(const Binding binding, Bind(spec, {{"x", Operand(shape)}}, {}));
    GC_ASSIGN_OR_RETURN(const VariantSpec* variant, ChooseVariant(spec, binding, device, wanted));
    return variant->name;
  }
  KernelSpec spec;
};

TEST_F(Variants, TheLastThatFitsIsChosen) {
  EXPECT_EQ(*Choose("f32[2,8]", {.kind = "cpu"}, ""), "vec4");
  EXPECT_EQ(*Choose("f32[2,7]", {.kind = "cpu"}, ""), "naive");
  EXPECT_EQ(*Choose("f32[2,8]", {.kind = "cpu"}, "naive"), "naive");
  EXPECT_EQ(*Choose("f32[2,8]", {.kind = "cuda", .sm = 90}, ""), "tma");
}

TEST_F(Variants, OneThatDoesNotFitIsRefused) {
  EXPECT_THAT(Choose("f32[2,7]", {.kind = "cpu"}, "vec4"),
              StatusIs(kInvalid, "variant 'vec4' of 'softmax' takes only calls where N % 4 == 0"));
  EXPECT_THAT(Choose("f32[2,8]", {.kind = "cuda", .sm = 80}, ""),
              StatusIs(kInvalid, HasSubstr("no variant on cuda that takes this call")));
}

TEST_F(Variants, OneThatIsNotThereIsNotFound) {
  const auto chosen = Choose("f32[2,8]", {.kind = "cpu"}, "tma");
  EXPECT_THAT(chosen, StatusIs(absl::StatusCode::kNotFound,
                               "kernel 'softmax' has no variant 'tma' on cpu; it has "
                               "['naive','vec4']"));
  EXPECT_EQ(DetailsOf(chosen.status()).field, "variant");
  EXPECT_THAT(Choose("f32[2,8]", {.kind = "tpu"}, ""),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no variant on tpu")));
}

TEST(CheckAttribute, A15_NumbersAreFiniteAndWithinTheirRange) {
  const KernelSpec spec =
      *ParseKernelSpec("k; any: f64, open: f64 in (0, 1], whole: i64 in [0, 9]");
  const auto check = [&](int i, AttributeValue value) {
    return CheckAttribute(spec.attributes[i], value);
  };
  for (const double fine : {1e308, -1e308, -0.0, 5e-324}) EXPECT_THAT(check(0, fine), IsOk());
  for (const double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_THAT(check(0, wrong), StatusIs(kInvalid, HasSubstr("'any': want a finite f64")));
    EXPECT_THAT(check(1, wrong), StatusIs(kInvalid, HasSubstr("'open': want f64 in (0, 1]")));
  }
  EXPECT_THAT(check(1, 1.0), IsOk());
  EXPECT_THAT(check(1, -0.0), StatusIs(kInvalid, HasSubstr("(0, 1], got -0")));
  EXPECT_THAT(check(1, 1e308), StatusIs(kInvalid, HasSubstr("got 1e+308")));
  EXPECT_THAT(check(2, std::int64_t{10}), StatusIs(kInvalid, HasSubstr("[0, 9], got 10")));
  EXPECT_THAT(check(2, -0.0), StatusIs(kInvalid, HasSubstr("want i64")));
}

TEST(ParseAttributeValue, ReadsWhatPeopleWrite) {
  const KernelSpec spec =
      *ParseKernelSpec("k; i: i64 in [0, 9], f: f64, b: bool, d: dtype, m: {tanh, none}");
  const auto parse = [&](int i, const char* text) {
    return ParseAttributeValue(spec.attributes[i], text);
  };
  EXPECT_EQ(*parse(0, "7"), AttributeValue(7_i));
  EXPECT_EQ(*parse(1, "1e-3"), AttributeValue(1e-3));
  EXPECT_EQ(*parse(2, "true"), AttributeValue(true));
  EXPECT_EQ(*parse(3, "f16"), AttributeValue(DType::kF16));
  EXPECT_EQ(*parse(4, "tanh"), AttributeValue(std::string("tanh")));
  EXPECT_THAT(parse(0, "1e-3"),
              StatusIs(kInvalid, "attribute 'i': want i64 in [0, 9], got '1e-3'"));
  EXPECT_THAT(parse(0, "10"), StatusIs(kInvalid, HasSubstr("got 10")));
  EXPECT_THAT(parse(1, "nan"), StatusIs(kInvalid, HasSubstr("want a finite f64")));
  EXPECT_THAT(parse(2, "yes"), StatusIs(kInvalid, HasSubstr("want bool, got 'yes'")));
  EXPECT_THAT(parse(4, "erf"), StatusIs(kInvalid, HasSubstr("want one of {tanh, none}")));
}

// A few kilobytes of words and of empty tensors, which took minutes.
TEST(Binding, WordsThatTakeTooManyStepsAreRefused) {
  const auto of = [](const Shape& shape) {
    return OperandValue{.is_list = true,
                        .tensors = std::vector<TensorSpec>(10'000, {DType::kF32, shape})};
  };
  const auto bind = [&](absl::string_view term, int terms) {
    std::string expr = absl::StrCat("min(", term);
    for (int i = 1; i < terms; ++i) absl::StrAppend(&expr, ",", term);
    const auto spec =
        ParseKernelSpec(absl::StrCat("f x: f32[*]..., z: f32[N, ", expr, ")]... -> y: f32[1]"));
    if (!spec.ok()) return spec.status();
    return Bind(*spec, {{"x", of({0})}, {"z", of({0, 0})}}, {}).status();
  };
  EXPECT_THAT(bind("N", 20), IsOk());
  for (const char* term : {"numel(x)", "bytes(x)", "N", "0"}) {
    EXPECT_THAT(bind(term, 1500), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps")))
        << term;
  }
  EXPECT_THAT(bind("numel(x)", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps")));
}

}  // namespace
}  // namespace gridclock
