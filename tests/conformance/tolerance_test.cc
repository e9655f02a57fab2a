// What the tolerance lets pass, on kernels of the catalogue: sums in f32 in plain order, and
// nothing else that is as wrong as all zeros.
#include <cmath>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/cpu_device.h"
#include "kernels/verify/verify.h"
#include "proto/types/generator.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

// One call of a kernel whose operands are f32, with inputs from a generator.
class ToleranceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_,
                         CpuDevice::Create({.threads = 2, .level = "", .calibrate = false}));
    ASSERT_OK_AND_ASSIGN(Registry registry, Registry::Create(BuiltInKernels()));
    registry_ = std::make_unique<Registry>(std::move(registry));
  }

  void Prepare(const char* kernel, const std::vector<Shape>& shapes, const Generator& generator,
               const std::vector<NamedAttribute>& attributes = {}) {
    kernel_ = registry_->Find(kernel);
    std::vector<NamedOperand> inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const TensorSpec tensor{.dtype = DType::kF32, .shape = shapes[i]};
      inputs.push_back({kernel_->spec.inputs[i].name, {.is_list = false, .tensors = {tensor}}});
    }
    ASSERT_OK_AND_ASSIGN(binding_, Bind(kernel_->spec, inputs, attributes));
    in_.clear();
    data_.clear();
    for (const OperandValue& value : binding_.inputs) {
      Generator own = generator;
      own.seed += in_.size();
      in_.push_back(Add(value));
      const TensorSpec& tensor = value.tensors[0];
      ASSERT_THAT(
          device_->Generate(own, tensor.dtype, 0, Elements(tensor.shape), in_.back().data[0]),
          IsOk());
    }
    out_ = {Add(binding_.outputs[0])};
  }

  void Launch(const char* variant) {
    const Variant* found = Registry::FindVariant(*kernel_, "cpu", variant);
    ASSERT_NE(found, nullptr) << variant;
    ASSERT_THAT(found->launch({.binding = &binding_,
                               .inputs = in_,
                               .outputs = out_,
                               .scratch = {},
                               .threads = device_->threads()}),
                IsOk());
  }

  // Of some units at least.
  Verification Check(decltype(Variant::magnitude) magnitude = nullptr) {
    Threads& threads = *device_->threads();
    std::vector<std::byte> memory(VerifyBytes(kernel_->def, binding_, threads.count()));
    const auto found =
        Verify(kernel_->def, binding_, in_, out_, threads, memory,
               {.most_terms = std::int64_t{1} << 23, .seed = 1, .magnitude = magnitude});
    EXPECT_THAT(found, IsOk());
    return found.value_or(Verification{});
  }

  void ExpectRight(const char* variant) {
    Launch(variant);
    const Verification found = Check();
    EXPECT_EQ(found.mismatches, 0)
        << variant << ": " << found.first_mismatch << ", error " << found.max_error;
    EXPECT_FALSE(IsUndecided(found)) << variant;
  }

  // All outputs are zero; many enough of them that chance plays no part.
  void ExpectZerosDiffer() {
    const auto bytes = static_cast<std::size_t>(Bytes(out_[0].value->tensors[0]));
    std::memset(out_[0].data[0], 0, bytes);
    const Verification found = Check();
    EXPECT_GT(found.mismatches, found.checked / 2) << found.first_mismatch;
  }

 private:
  OperandView Add(const OperandValue& value) {
    data_.push_back(std::make_unique<float[]>(Elements(value.tensors[0].shape)));
    return {.value = &value, .data = {data_.back().get()}};
  }

 protected:
  std::unique_ptr<CpuDevice> device_;
  std::unique_ptr<Registry> registry_;
  const RegisteredKernel* kernel_ = nullptr;
  Binding binding_;
  std::vector<OperandView> in_, out_;
  std::vector<std::unique_ptr<float[]>> data_;
};

const Generator kRandom[] = {{GeneratorKind::kRandn, 0, 0, 42},
                             {GeneratorKind::kUniform, 0, 1, 42},
                             {GeneratorKind::kUniform, -1000, 1000, 42},
                             {GeneratorKind::kRandint, 0, 100, 42}};

TEST_F(ToleranceTest, ZerosAreNoSum) {
  for (const Shape& shape : {Shape{5, 65536}, Shape{1 << 20}, Shape{3, 1 << 22}}) {
    ASSERT_NO_FATAL_FAILURE(Prepare("sum", {shape}, kRandom[0]));
    ExpectZerosDiffer();
  }
}

TEST_F(ToleranceTest, ZerosAreNoProduct) {
  for (const std::int64_t k : {32768, 65536, 1 << 20}) {
    ASSERT_NO_FATAL_FAILURE(Prepare("matmul", {{3, k}, {k, 3}}, kRandom[0]));
    ExpectZerosDiffer();
  }
}

TEST_F(ToleranceTest, ZerosAreNoSoftmax) {
  for (const Shape& shape : {Shape{2, 131072}, Shape{1 << 22}}) {
    ASSERT_NO_FATAL_FAILURE(Prepare("softmax", {shape}, kRandom[0]));
    ExpectZerosDiffer();
  }
}

TEST_F(ToleranceTest, TwoThousandthsOffIsNoSoftmax) {
  ASSERT_NO_FATAL_FAILURE(Prepare("softmax", {{131072}}, kRandom[0]));
  Launch("simd");
  auto* y = static_cast<float*>(out_[0].data[0]);
  for (int i = 0; i < 131072; ++i) y[i] *= 1.002F;
  EXPECT_GT(Check().mismatches, 131072 / 2);
}

TEST_F(ToleranceTest, PlainSumsOfRandomTermsPassAtEverySize) {
  for (const Generator& generator : kRandom) {
    // Small integers tie, to the even side, once the sum is far larger: beyond a million of them
    // the plain sum is off by more than it should be.
    const std::int64_t longest = generator.kind == GeneratorKind::kRandint ? 1 << 20 : 1 << 23;
    for (const Shape& shape :
         {Shape{500, 33}, Shape{200, 1023}, Shape{20, 40961}, Shape{1 << 20}, Shape{longest}}) {
      SCOPED_TRACE(absl::StrCat(ToText(generator), " ", Elements(shape)));
      ASSERT_NO_FATAL_FAILURE(Prepare("sum", {shape}, generator));
      for (const char* variant : {"naive", "pairwise", "simd"}) ExpectRight(variant);
    }
  }
}

// Roundings of one sign are let off by nobody, so that what is fastest may not add all in order.
TEST_F(ToleranceTest, TheFastestAddsEqualTermsRightOverAnyAxis) {
  struct Case {
    Shape shape;
    std::int64_t axis;
  };
  const Case cases[] = {{{3, 1'000'000}, 1},  {{1'000'000, 2}, 0},   {{32, 102'400, 2}, 1},
                        {{32, 4096, 520}, 1}, {{40, 20'000, 37}, 1}, {{300'000, 11}, 0}};
  for (const auto& [shape, axis] : cases) {
    for (const char* kernel : {"sum", "mean", "cumsum"}) {
      if (std::string_view(kernel) == "cumsum" && Elements(shape) > (1 << 26)) continue;
      for (const double term : {0.1, 0.7}) {
        SCOPED_TRACE(
            absl::StrCat(kernel, " over ", axis, " of ", absl::StrJoin(shape, "x"), ", ", term));
        const Generator equal{GeneratorKind::kFull, term, 0, 0};
        ASSERT_NO_FATAL_FAILURE(Prepare(kernel, {shape}, equal, {{"axis", axis}}));
        ExpectRight("simd");
      }
    }
  }
}

TEST_F(ToleranceTest, PlainProductsOfRandomTermsPassAtEverySize) {
  for (const Generator& generator : kRandom) {
    for (const std::int64_t k : {100, 4096, 32768, 1 << 20}) {
      SCOPED_TRACE(absl::StrCat(ToText(generator), " K=", k));
      ASSERT_NO_FATAL_FAILURE(Prepare("matmul", {{2, k}, {k, 3}}, generator));
      for (const char* variant : {"naive", "tiled", "packed"}) ExpectRight(variant);
    }
  }
}

TEST_F(ToleranceTest, PlainSoftmaxPassesAtEverySize) {
  for (const Shape& shape : {Shape{50, 1000}, Shape{5, 40961}, Shape{1 << 20}, Shape{1 << 22}}) {
    SCOPED_TRACE(Elements(shape));
    ASSERT_NO_FATAL_FAILURE(Prepare("softmax", {shape}, kRandom[0]));
    for (const char* variant : {"naive", "online", "simd"}) ExpectRight(variant);
  }
}

// In plain order most of these overflow on their way, and nobody can say that zero is further off.
TEST_F(ToleranceTest, WhereTheOrderDecidesNothingIsKnownToBeWrong) {
  ASSERT_NO_FATAL_FAILURE(Prepare("sum", {{500, 50}}, {GeneratorKind::kUniform, -3e38, 3e38, 42}));
  Launch("naive");
  const Verification of_sums = Check();
  EXPECT_EQ(of_sums.mismatches, 0);
  EXPECT_EQ(of_sums.nan_mismatches, 0);
  EXPECT_TRUE(IsUndecided(of_sums));
  std::memset(out_[0].data[0], 0, 500 * sizeof(float));
  const Verification of_zeros = Check();
  EXPECT_EQ(of_zeros.mismatches, 0);
  EXPECT_EQ(of_zeros.undecided, of_zeros.checked);
}

// One that differs there is enough: that all others are right vouches for none of them.
TEST_F(ToleranceTest, OneSumThatOverflowedOnItsWayLeavesTheResultOpen) {
  ASSERT_NO_FATAL_FAILURE(Prepare("sum", {{500, 2}}, kRandom[0]));
  auto* x = static_cast<float*>(in_[0].data[0]);
  x[0] = 3e38F;
  x[1] = -3e38F;
  Launch("naive");
  EXPECT_FALSE(IsUndecided(Check()));
  static_cast<float*>(out_[0].data[0])[0] = INFINITY;
  const Verification found = Check();
  EXPECT_EQ(found.mismatches, 0);
  EXPECT_EQ(found.undecided, 1);
  EXPECT_TRUE(IsUndecided(found));
}

// By inf - inf, where a * b is +inf; of -inf the sum of the squares and it is +inf, as the
// distance.
TEST_F(ToleranceTest, NaNIsLeftOpenWhereADistanceByTheProductComesToIt) {
  ASSERT_NO_FATAL_FAILURE(Prepare("cdist", {{2, 3}, {4, 3}}, {GeneratorKind::kUniform, 1, 2, 42}));
  const auto own = Registry::FindVariant(*kernel_, "cpu", "matmul")->magnitude;
  static_cast<float*>(in_[0].data[0])[0] = INFINITY;
  static_cast<float*>(in_[1].data[0])[3] = -1;
  Launch("naive");
  auto* distances = static_cast<float*>(out_[0].data[0]);
  EXPECT_FALSE(IsUndecided(Check(own)));
  const auto mismatches = [&](std::size_t at, float value, const Verification& found) {
    EXPECT_EQ(found.undecided, found.mismatches == 0 ? 1 : 0) << at << " " << value;
    EXPECT_EQ(IsUndecided(found), found.mismatches == 0) << at << " " << value;
    return found.mismatches;
  };
  for (const auto& [at, value, wrong] : {std::tuple(0, NAN, 0), std::tuple(0, 1.0F, 1),
                                         std::tuple(1, NAN, 1), std::tuple(7, NAN, 1)}) {
    const float right = std::exchange(distances[at], value);
    EXPECT_EQ(mismatches(at, value, Check(own)), wrong) << at << " " << value;
    EXPECT_EQ(Check().mismatches, 1) << at << " " << value;
    distances[at] = right;
  }
}

TEST_F(ToleranceTest, ZerosAreNoSumOfLargeNumbersThatHolds) {
  ASSERT_NO_FATAL_FAILURE(Prepare("sum", {{500, 50}}, {GeneratorKind::kUniform, -3e36, 3e36, 42}));
  Launch("naive");
  EXPECT_EQ(Check().undecided, 0);
  ExpectZerosDiffer();
}

}  // namespace
}  // namespace gridclock
