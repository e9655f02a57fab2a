#include "client/cli/shapes.h"

#include "tests/support/status_matchers.h"

namespace gridclock::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The inputs as text, after parsing kernel and wishes: "f32[8,16] f32[16,4]".
absl::StatusOr<std::string> Solve(const char* words, const std::vector<std::string>& shapes,
                                  const std::vector<std::string>& dtypes = {},
                                  const std::vector<NamedAttribute>& attributes = {}) {
  GC_ASSIGN_OR_RETURN(const KernelSpec spec, ParseKernelSpec(words));
  ShapeWishes wishes;
  for (const std::string& text : shapes) GC_RETURN_IF_ERROR(AddShape(text, &wishes));
  for (const std::string& text : dtypes) GC_RETURN_IF_ERROR(AddDType(text, &wishes));
  GC_ASSIGN_OR_RETURN(const auto inputs, SolveShapes(spec, wishes, attributes));
  std::string out;
  for (const NamedOperand& input : inputs) {
    for (const TensorSpec& tensor : input.value.tensors) {
      out += (out.empty() ? "" : " ") + ToText(tensor);
    }
  }
  return out;
}

constexpr char kSquare[] = "square x: T[*] -> y: T[*] over x where T in {f64, f32, f16, bf16}";
constexpr char kSum[] = "sum x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1";
constexpr char kMatmul[] =
    "matmul a: T[*, ta ? [K, M] : [M, K]], b: T[*, tb ? [N, K] : [K, N]] -> c: T[*, M, N]; "
    "ta: bool = false, tb: bool = false";
constexpr char kSgd[] = "sgd inout p: f32[*]..., g: f32[*]...; lr: f64 = 1e-3";

TEST(ShapesTest, WhatIsSaidTwiceIsRefused) {
  EXPECT_THAT(Solve(kSquare, {"*=4", "N=3"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                       HasSubstr("another --shape says the same")));
  // N is how many elements there are; no other name stands for all dimensions.
  EXPECT_THAT(Solve(kSquare, {"M=4"}), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("'square' has no 'M'; it has *")));
  EXPECT_THAT(
      Solve(kSum, {"N=2", "*=4", "*A=3"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("another --shape says the same")));
  EXPECT_THAT(Solve(kSquare, {"N=3"}, {"T=f16", "T=f32"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T is there twice")));
  EXPECT_EQ(*Solve(kSquare, {"N=3"}, {"f16", "T=f32"}), "f32[3]");  // All, and one in particular.
}

TEST(ShapesTest, WithoutThatDimensionTheRunTakesIt) {
  EXPECT_EQ(*Solve(kSquare, {"N=1M"}), "f32[1048576]");
  EXPECT_EQ(*Solve(kSquare, {"*=8x1024"}), "f32[8,1024]");
}

TEST(ShapesTest, DTypesByVariableOrAll) {
  EXPECT_EQ(*Solve(kSquare, {"N=3"}, {"T=bf16"}), "bf16[3]");
  EXPECT_EQ(*Solve(kSquare, {"N=3"}, {"f64"}), "f64[3]");
  EXPECT_THAT(Solve(kSquare, {"N=3"}, {"U=f64"}),
              StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr("U"), HasSubstr("T"))));
}

TEST(ShapesTest, MatmulWithBatchAndTranspose) {
  EXPECT_EQ(*Solve(kMatmul, {"M=2", "K=3", "N=4"}), "f32[2,3] f32[3,4]");
  EXPECT_EQ(*Solve(kMatmul, {"M=2", "K=3", "N=4", "*=5"}), "f32[5,2,3] f32[5,3,4]");
  EXPECT_EQ(*Solve(kMatmul, {"M=2", "K=3", "N=4"}, {}, {{"ta", true}}), "f32[3,2] f32[3,4]");
}

TEST(ShapesTest, TheAxisStandsWhereTheAttributeSays) {
  EXPECT_EQ(*Solve(kSum, {"N=7"}), "f32[7]");
  EXPECT_EQ(*Solve(kSum, {"N=7", "*=8x16"}), "f32[8,16,7]");
  EXPECT_EQ(*Solve(kSum, {"N=7", "*=8x16"}, {}, {{"axis", std::int64_t{1}}}), "f32[8,7,16]");
  EXPECT_EQ(*Solve(kSum, {"N=7", "*A=8", "B=16"}, {}, {{"axis", std::int64_t{1}}}), "f32[8,7,16]");
}

TEST(ShapesTest, AListTakesAShapeForEachTensor) {
  EXPECT_EQ(*Solve(kSgd, {"*=1024,8x16"}), "f32[1024] f32[8,16] f32[1024] f32[8,16]");
  EXPECT_THAT(Solve(kSquare, {"*=1,2"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("list")));
}

TEST(ShapesTest, WhatIsMissingOrUnknownIsNamed) {
  EXPECT_THAT(Solve(kMatmul, {"M=2", "K=3"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("N=... is missing")));
  EXPECT_THAT(Solve(kMatmul, {"Q=2"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no 'Q'")));
  EXPECT_THAT(Solve(kSquare, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("how large")));
  EXPECT_THAT(Solve(kSquare, {"N"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NAME=SIZE")));
  EXPECT_THAT(Solve(kSquare, {"N=1", "N=2"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
}

TEST(ShapesTest, EverySizeOfAShapeIsThere) {
  EXPECT_EQ(*Solve(kSquare, {"*="}), "f32[]");
  for (const char* text : {"*=8xx4", "*=x", "*=8x", "*=x4"}) {
    EXPECT_FALSE(Solve(kSquare, {text}).ok()) << text;
  }
}

TEST(ShapesTest, AWishThatOnlyAToldInputUsesIsRefused) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec(kMatmul));
  const auto check = [&](const char* shape, const char* dtype) {
    ShapeWishes wishes;
    if (*shape != '\0') AddShape(shape, &wishes).IgnoreError();
    if (*dtype != '\0') AddDType(dtype, &wishes).IgnoreError();
    return CheckWishes(spec, wishes, {{"a", "a comes from a.npy, which is f32[3,4]"}});
  };
  EXPECT_THAT(check("N=8", ""), IsOk());
  EXPECT_THAT(check("K=4", ""), IsOk());  // Of b too.
  EXPECT_THAT(check("", "bf16"), IsOk());
  EXPECT_THAT(check("M=8", ""), StatusIs(absl::StatusCode::kInvalidArgument,
                                         "--shape M: a comes from a.npy, which is f32[3,4]"));
  EXPECT_THAT(check("Q=8", ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no input")));
}

TEST(ShapesTest, ADTypeThatNoInputTakesIsRefused) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec square, ParseKernelSpec(kSquare));
  ASSERT_OK_AND_ASSIGN(const KernelSpec sgd, ParseKernelSpec(kSgd));
  ShapeWishes wishes;
  ASSERT_THAT(AddDType("bf16", &wishes), IsOk());
  EXPECT_THAT(CheckWishes(square, wishes, {}), IsOk());
  EXPECT_THAT(CheckWishes(square, wishes, {{"x", "x comes from a.npy"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "--dtype bf16: x comes from a.npy"));
  EXPECT_THAT(CheckWishes(sgd, wishes, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no input of 'sgd'")));
}

TEST(ShapesTest, ASlipSaysWhatWasMeant) {
  ShapeWishes wishes;
  EXPECT_THAT(AddShape("1M", &wishes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("say --shape N=1M")));
  EXPECT_THAT(AddDType("float16", &wishes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'float16'; f16?")));
}

TEST(ShapesTest, AToldInputNeedsNoSizes) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec(kMatmul));
  ShapeWishes wishes;
  for (const char* shape : {"K=4", "N=8"}) ASSERT_THAT(AddShape(shape, &wishes), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto inputs, SolveShapes(spec, wishes, {}, {"a"}));
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(ToText(inputs[0].value.tensors[0]), "f32[4,8]");
}

TEST(ShapesTest, LoadTakesADefault) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec(kMatmul));
  ShapeWishes wishes;
  wishes.default_dim = 1024;
  ASSERT_OK_AND_ASSIGN(const auto inputs, SolveShapes(spec, wishes, {}));
  EXPECT_EQ(ToText(inputs[0].value.tensors[0]), "f32[1024,1024]");
}

TEST(ShapesTest, AKernelWithoutInputsNeedsNothing) {
  EXPECT_EQ(*Solve("empty", {}), "");
}

}  // namespace
}  // namespace gridclock::cli
