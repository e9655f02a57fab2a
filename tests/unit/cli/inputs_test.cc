#include "client/cli/inputs.h"

#include <cstring>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cpp/npz.h"
#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

KernelSpec Spec(const char* words) {
  return *ParseKernelSpec(words);
}

const char kAdd[] = "vector_add a: T[*], b: T[*] -> c: T[*] over a";

TEST(SourceTest, FilesMayNameADTypeOrAMember) {
  EXPECT_EQ(ParseSource("dir/a.npy")->path, "dir/a.npy");
  EXPECT_EQ(ParseSource("a.npy:bf16")->as, DType::kBF16);
  EXPECT_EQ(ParseSource("w.npz:layer0")->member, "layer0");
  EXPECT_EQ(ParseSource("w.npz:bf16")->as, DType::kBF16);
  EXPECT_EQ(ParseSource("w.npz:bf16")->member, "");
}

TEST(SourceTest, AMemberMayNameItsDType) {
  ASSERT_OK_AND_ASSIGN(const Source source, ParseSource("w.npz:layer0:f8e4m3"));
  EXPECT_EQ(source.path, "w.npz");
  EXPECT_EQ(source.member, "layer0");
  EXPECT_EQ(source.as, DType::kF8E4M3);
  EXPECT_EQ(ParseSource("w.npz:model:layer0")->member, "model:layer0");
}

TEST(SourceTest, BehindANpyStandsADTypeAlone) {
  const auto why = [](const std::string& text) {
    return std::string(ParseSource(text).status().message());
  };
  EXPECT_THAT(why("a.npy:bf61"), StartsWith("'a.npy:bf61': no dtype 'bf61'; there are f64,"));
  EXPECT_THAT(why("a.npy:float64"), HasSubstr("no dtype 'float64'; f64? There are"));
  EXPECT_THAT(why("a.npy:name:bf16"), HasSubstr("no dtype 'name:bf16'"));
  EXPECT_THAT(why("a.npy:"), HasSubstr("no dtype ''"));
}

TEST(SourceTest, AnArrayOfAnArchiveHasAName) {
  for (const char* text : {"w.npz:", "w.npz::bf16"}) {
    EXPECT_THAT(ParseSource(text),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("which array? Say w.npz:NAME, or w.npz for all")))
        << text;
  }
}

TEST(SourceTest, GeneratorsMayNameASpec) {
  ASSERT_OK_AND_ASSIGN(const Source uniform, ParseSource("uniform:-1:1:f32[8,1K]"));
  EXPECT_EQ(uniform.generator->kind, GeneratorKind::kUniform);
  EXPECT_EQ(uniform.generator->a, -1);
  EXPECT_EQ(ToText(*uniform.spec), "f32[8,1024]");
  ASSERT_OK_AND_ASSIGN(const Source ones, ParseSource("ones"));
  EXPECT_FALSE(ones.spec.has_value());
  ASSERT_OK_AND_ASSIGN(const Source plain, ParseSource("f32[3]"));
  EXPECT_EQ(plain.generator->kind, GeneratorKind::kRandn);
  EXPECT_EQ(ToText(*plain.spec), "f32[3]");
}

TEST(SourceTest, WhatIsNeitherSaysWhatWasWanted) {
  EXPECT_THAT(ParseSource("a.txt"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("randn")));
}

TEST(SourceTest, TheProblemIsNamedOnce) {
  const auto why = [](const std::string& text) {
    return std::string(ParseSource(text).status().message());
  };
  EXPECT_THAT(why("a.np"), HasSubstr("'a.np' is no .npy or .npz file"));
  EXPECT_THAT(why("/"), HasSubstr("'/' is a folder"));
  EXPECT_THAT(why("rand:f32[4]"), StartsWith("no generator 'rand:f32'; want FILE.npy"));
  EXPECT_EQ(why("randn:f32"), "'randn:f32': which shape? Say it as in randn:f32[1024]");
  EXPECT_THAT(why("randn:float32[4]"), StartsWith("no dtype 'float32'; f32? There are"));
  EXPECT_THAT(why("randn:f33[4]"), StartsWith("no dtype 'f33'; there are"));
}

TEST(WordsTest, AFileWithoutANameIsGivenOne) {
  EXPECT_THAT(SortWords(Spec(kAdd), {"a.npy"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("; a=a.npy?")));
}

TEST(InputsTest, AWrongDTypeOfAFileSaysHowToConvertIt) {
  RunCall call;
  call.inputs.push_back({.name = "x", .value = {false, {{DType::kI64, {1}}}}, .bytes = {{}}});
  const absl::Status wrong = absl::InvalidArgumentError("'x': want T in {f64, f32}, got i64");
  EXPECT_EQ(WithConversion(wrong, call).message(),
            "'x': want T in {f64, f32}, got i64; convert it, e.g. x.astype('f4')");
  const absl::Status other = absl::InvalidArgumentError("'x': want rank 2, got 1");
  EXPECT_EQ(WithConversion(other, call), other);
}

TEST(WordsTest, TheKernelSaysWhatIsAnAttribute) {
  ASSERT_OK_AND_ASSIGN(const Words words,
                       SortWords(Spec("sum x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1"),
                                 {"axis=1", "x=a.npy"}));
  EXPECT_EQ(words.attributes[0].value, AttributeValue(std::int64_t{1}));
  EXPECT_EQ(words.operands[0].sources[0].path, "a.npy");
}

TEST(WordsTest, AnUnknownNameNamesTheKnown) {
  EXPECT_THAT(SortWords(Spec(kAdd), {"z=a.npy"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("it has a, b")));
}

TEST(WordsTest, ADotSetsTheVariantApart) {
  EXPECT_EQ(ParseKernelName("gelu.unfused").kernel, "gelu");
  EXPECT_EQ(ParseKernelName("gelu.unfused").variant, "unfused");
  EXPECT_EQ(ParseKernelName("gelu").variant, "");
}

absl::StatusOr<Inputs> Make(const KernelSpec& spec, const std::vector<std::string>& text,
                            const InputOptions& options = {}) {
  GC_ASSIGN_OR_RETURN(const Words words, SortWords(spec, text));
  return MakeInputs(spec, words, {}, options);
}

TEST(InputsTest, EachInputHasItsOwnSeed) {
  ASSERT_OK_AND_ASSIGN(const Inputs made, Make(Spec(kAdd), {"b=randn:f32[4]", "a=randn:f32[4]"},
                                               {.make_on = MakeOn::kServer, .seed = 7}));
  EXPECT_EQ(made.inputs[0].name, "a");
  EXPECT_EQ(made.inputs[0].generator->seed, 7U);
  EXPECT_EQ(made.inputs[1].generator->seed, 8U);
}

TEST(InputsTest, TheClientMakesBytes) {
  ASSERT_OK_AND_ASSIGN(const Inputs made, Make(Spec(kAdd), {"a=arange:f32[3]", "b=ones:f32[3]"},
                                               {.make_on = MakeOn::kClient, .seed = 0}));
  ASSERT_EQ(made.inputs[0].bytes[0].size(), 12U);
  float values[3];
  std::memcpy(values, made.inputs[0].bytes[0].data(), 12);
  EXPECT_THAT(values, testing::ElementsAre(0, 1, 2));
  EXPECT_FALSE(made.inputs[0].generator.has_value());
}

TEST(InputsTest, AMissingInputSaysHowToGiveIt) {
  EXPECT_THAT(Make(Spec(kAdd), {"a=ones:f32[3]"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b=FILE.npy")));
}

TEST(InputsTest, AGeneratorMustFitTheDType) {
  EXPECT_FALSE(Make(Spec(kAdd), {"a=randint:0:9999:i8[3]", "b=ones:i8[3]"}).ok());
}

TEST(InputsTest, ANotListTakesOneTensor) {
  EXPECT_THAT(Make(Spec(kAdd), {"a=ones:f32[3]", "a=ones:f32[3]", "b=ones:f32[3]"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one tensor")));
}

TEST(InputsTest, OneArrayOfAnArchiveIsReadAsTheDTypeThatIsSaid) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "inputs_member_test_", getpid(), ".npz");
  const std::uint16_t data[] = {0x3f80, 0x4000};
  const auto bytes = std::as_bytes(std::span<const std::uint16_t>(data));
  ASSERT_THAT(WriteNpz(path, {{"other", {.dtype = DType::kU8, .shape = {4}}, bytes},
                              {"w", {.dtype = DType::kBF16, .shape = {2}}, bytes}}),
              IsOk());
  const KernelSpec square = Spec("square x: T[*] -> y: T[*] over x");
  ASSERT_OK_AND_ASSIGN(const Inputs made, Make(square, {"x=" + path + ":w:bf16"}));
  ASSERT_EQ(made.inputs[0].value.tensors.size(), 1U);
  EXPECT_EQ(ToText(made.inputs[0].value.tensors[0]), "bf16[2]");
  EXPECT_THAT(Make(square, {"x=" + path + ":v"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no array 'v'; it has other, w")));
  unlink(path.c_str());
}

TEST(InputsTest, AListTakesAnArchive) {
  const std::string path = absl::StrCat(testing::TempDir(), "inputs_test_", getpid(), ".npz");
  const float data[] = {1, 2, 3};
  const auto bytes = std::as_bytes(std::span<const float>(data));
  ASSERT_THAT(WriteNpz(path, {{"w", {.dtype = DType::kF32, .shape = {3}}, bytes},
                              {"b", {.dtype = DType::kF32, .shape = {2}}, bytes.first(8)}}),
              IsOk());
  ASSERT_OK_AND_ASSIGN(const Inputs made,
                       Make(Spec("norm p: f32[*]... -> y: f32[]"), {"p=" + path}));
  ASSERT_EQ(made.inputs[0].value.tensors.size(), 2U);
  EXPECT_EQ(ToText(made.inputs[0].value.tensors[1]), "f32[2]");
  unlink(path.c_str());
}

}  // namespace
}  // namespace gridclock::cli
