#include "proto/types/infer_words.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "proto/types/kernel_spec.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

// An entry of the given types, "float const* in" with names and "float const*" without.
ModuleEntry Entry(const std::string& display, const std::vector<EntryParameter>& parameters) {
  ModuleEntry entry;
  entry.name = entry.display = display;
  entry.parameters = parameters;
  return entry;
}
EntryParameter Pointer(const std::string& type, const std::string& name = "") {
  return {.offset = 0, .size = 8, .type = type, .name = name};
}
EntryParameter Number(const std::string& type, const std::string& name = "") {
  return {.offset = 0, .size = 4, .type = type, .name = name};
}
NamedOperand Tensor(const std::string& name, const std::string& spec) {
  return {name, {.is_list = false, .tensors = {*ParseTensorSpec(spec)}}};
}

// What is inferred is what people would write, and it can be read back.
std::string Inferred(const ModuleEntry& entry, const UnwordedCall& call) {
  const auto words = InferWords(entry, call);
  EXPECT_THAT(words, IsOk());
  if (!words.ok()) return "";
  EXPECT_THAT(ParseKernelSpec(*words), IsOk()) << *words;
  return *words;
}

TEST(InferWords, ByOrderWhereNothingHasAName) {
  const ModuleEntry entry =
      Entry("square", {Pointer("float const*"), Pointer("float*"), Number("int")});
  EXPECT_EQ(Inferred(entry, {.inputs = {Tensor("x", "f32[5]")}, .attributes = {}, .outputs = {}}),
            "square x: f32[*] -> out: f32[*] params x, out, p2: int = numel(x)");
  EXPECT_EQ(
      Inferred(entry, {.inputs = {Tensor("x", "f32[5]")}, .attributes = {}, .outputs = {"y"}}),
      "square x: f32[*] -> y: f32[*] params x, y, p2: int = numel(x)");
  // As many inputs as pointers: what is not const is worked on in place.
  EXPECT_EQ(Inferred(entry, {.inputs = {Tensor("x", "f32[5]"), Tensor("y", "f32[5]")},
                             .attributes = {},
                             .outputs = {}}),
            "square x: f32[*], inout y: f32[*] params x, y, p2: int = numel(x)");
}

TEST(InferWords, ByTheNamesOfTheSource) {
  const ModuleEntry entry =
      Entry("square_matrix_kernel", {Pointer("float const*", "in"), Pointer("float*", "out"),
                                     Number("int", "width"), Number("int", "height")});
  EXPECT_EQ(Inferred(entry, {.inputs = {Tensor("in_", "f32[2,3]")},
                             .attributes = {"height", "width"},
                             .outputs = {}}),
            "square_matrix_kernel in_: f32[*] -> out: f32[*]; width: i64, height: i64 "
            "params in_, out, width: int = width, height: int = height");
  EXPECT_THAT(
      InferWords(entry, {.inputs = {Tensor("in_", "f32[2,3]")}, .attributes = {}, .outputs = {}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("numbers ['width','height'] are not told"),
                     HasSubstr("complete: square_matrix_kernel in_: f32[?] -> out: f32[?] grid(?) "
                               "block(?) params in_, out, width: int = ?, height: int = ?"))));
}

TEST(InferWords, InPlaceOfAllPointersWithoutConst) {
  const ModuleEntry entry =
      Entry("ns::Scale<float>",
            {Pointer("__half*", "X"), Number("float", "k"), Number("unsigned int", "N")});
  EXPECT_EQ(
      Inferred(entry, {.inputs = {Tensor("x", "f16[16]")}, .attributes = {"k"}, .outputs = {}}),
      "scale inout x: f16[*]; k: f64 params x, k: float = k, n: unsigned = numel(x)");
}

// The side of a square matmul, or the number of elements of a map: the parameter list is the same.
TEST(InferWords, NOfInputsWithSidesIsNotGuessed) {
  const UnwordedCall call = {.inputs = {Tensor("a", "f32[64,64]"), Tensor("b", "f32[64,64]")},
                             .attributes = {},
                             .outputs = {}};
  const auto entry = [](const std::string& count) {
    return Entry("mm", {Pointer("float const*", count.empty() ? "" : "A"),
                        Pointer("float const*", count.empty() ? "" : "B"),
                        Pointer("float*", count.empty() ? "" : "C"), Number("int", count)});
  };
  for (const char* count : {"N", "size", "len", ""}) {
    EXPECT_THAT(InferWords(entry(count), call),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("the number of elements, or the length of a side?"),
                               HasSubstr("complete: mm "))))
        << count;
  }
  EXPECT_EQ(Inferred(entry("numel"), call),
            "mm a: f32[*], b: f32[*] -> c: f32[*] params a, b, c, numel_: int = numel(a)");
  // Whose inner side is k is not told by names either.
  EXPECT_THAT(InferWords(Entry("mm", {Pointer("float const*", "A"), Pointer("float const*", "B"),
                                      Pointer("float*", "C"), Number("int", "M"),
                                      Number("int", "N"), Number("int", "K")}),
                         call),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the numbers ['m','n','k']")));
}

TEST(InferWords, ABlockThatTheCodeDemandsIsSaid) {
  ModuleEntry entry = Entry("f", {Pointer("int*")});
  entry.required_block = {128, 1, 1};
  EXPECT_EQ(Inferred(entry, {.inputs = {Tensor("x", "i32[8]")}, .attributes = {}, .outputs = {}}),
            "f inout x: i32[*] block(128, 1, 1) params x");
}

TEST(InferWords, WhatWouldBeAGuessIsRefused) {
  const auto refused = [](const ModuleEntry& entry, const UnwordedCall& call) {
    const auto words = InferWords(entry, call);
    EXPECT_THAT(words.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(words.status().message());
  };
  const NamedOperand x = Tensor("x", "f32[5]"), y = Tensor("y", "f32[7]");
  const UnwordedCall one = {.inputs = {x}, .attributes = {}, .outputs = {}};
  const UnwordedCall two = {.inputs = {x, y}, .attributes = {}, .outputs = {}};
  EXPECT_THAT(refused(Entry("f", {}), one), HasSubstr("its parameters are not known"));
  EXPECT_THAT(refused(Entry("f", {Pointer("")}), one), HasSubstr("type that is not known"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float**")}), one), HasSubstr("'float**'"));
  // Which of the two is written?
  EXPECT_THAT(refused(Entry("f", {Pointer("float*"), Pointer("float*")}), one),
              HasSubstr("2 pointers, 0 of them to const, and the call has 1 inputs"));
  EXPECT_THAT(
      refused(Entry("f", {Pointer("float const*"), Pointer("float const*"), Pointer("float*")}),
              two),
      HasSubstr("shape of which input"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float*"), Pointer("float*"), Number("int")}), two),
              HasSubstr("of which input the size"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float*"), Number("int", "width")}), one),
              HasSubstr("what is 'width'?"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float*"), Number("float")}), one),
              HasSubstr("what is 'p1'?"));
  EXPECT_THAT(refused(Entry("f", {Pointer("double*")}), one),
              HasSubstr("points to f64, the input is f32[5]"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float const*")}), one), HasSubstr("nothing comes out"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float const*", "a"), Pointer("float*", "x")}), one),
              HasSubstr("'a' is read and no input is called so"));
  EXPECT_THAT(
      refused(Entry("f", {Pointer("float*")}), {.inputs = {x}, .attributes = {"k"}, .outputs = {}}),
      HasSubstr("the attributes ['k']"));
  EXPECT_THAT(refused(Entry("f", {Pointer("float*")}),
                      {.inputs = {Tensor("a b", "f32[5]")}, .attributes = {}, .outputs = {}}),
              HasSubstr("want a name like a_b"));
}

TEST(InferWords, NamesOfCppBecomeNamesOfWords) {
  EXPECT_EQ(WordsName("N"), "n");
  EXPECT_EQ(WordsName("in"), "in_");
  EXPECT_EQ(WordsName("ns::Softmax<float, 256>"), "softmax");
  EXPECT_EQ(WordsName("2x"), "_2x");
  EXPECT_EQ(WordsName(""), "_");
}

TEST(InferWords, TheWordsToCompleteOfManyParametersAreShort) {
  const ModuleEntry entry = Entry("f", std::vector<EntryParameter>(1000, Pointer("float*")));
  EXPECT_LT(WordsToComplete(entry).size(), 1000u);
}

}  // namespace
}  // namespace gridclock
