// What is asked of the library, which here is fake_cublaslt.cc.
#include "kernels/catalog/cublaslt.cuh"

#include <array>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/fake_cublaslt.h"

#ifdef GRIDCLOCK_HAS_CUBLASLT
namespace gridclock {
namespace {

class CublasLt : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("LD_LIBRARY_PATH", FAKE_CUBLASLT, /*overwrite=*/1); }

  // f32[2, 2] of f32[2, k] and f32[k, 2], with a bias if asked: whether it is in the product.
  absl::StatusOr<bool> Multiply(std::int64_t k, bool bias) {
    return Multiply({.m = 2, .n = 2, .k = k, .bias = bias});
  }

  absl::StatusOr<bool> Multiply(const cublaslt::Product& product) {
    const OperandValue workspace{.is_list = false, .tensors = {{DType::kU8, {kMemory}}}};
    const std::vector<OperandView> inputs(3, {.value = nullptr, .data = {memory_.data()}});
    const std::vector<OperandView> scratch = {{.value = &workspace, .data = {memory_.data()}}};
    const Call call{.inputs = inputs, .outputs = {}, .scratch = scratch, .launches = &launches_};
    return cublaslt::MultiplyAndAdd(call, product, &asked_);
  }

  static constexpr std::int64_t kMemory = 128;
  alignas(256) std::array<float, 64> memory_ = {};
  std::int64_t launches_ = 0;
  Asked asked_;
};

TEST_F(CublasLt, AddsTheBiasWhereTheLibraryCan) {
  ASSERT_OK_AND_ASSIGN(const bool added, Multiply(2, /*bias=*/true));
  EXPECT_TRUE(added);
  EXPECT_EQ(asked_.added, 1);
  ASSERT_OK_AND_ASSIGN(const bool unasked, Multiply(2, /*bias=*/false));
  EXPECT_FALSE(unasked);
  EXPECT_EQ(asked_.added, 0);
  EXPECT_EQ(launches_, 2);
}

TEST_F(CublasLt, MultipliesWithoutTheBiasWhereTheLibraryHasNoAlgorithmWithIt) {
  ASSERT_OK_AND_ASSIGN(const bool added, Multiply(kNeverAdds, /*bias=*/true));
  EXPECT_FALSE(added);
  EXPECT_EQ(asked_.added, 0);
  EXPECT_EQ(launches_, 1);
  const std::int64_t before = asked_.algorithms;
  ASSERT_OK_AND_ASSIGN(const bool again, Multiply(kNeverAdds, /*bias=*/true));
  EXPECT_FALSE(again);
  EXPECT_EQ(asked_.algorithms, before);  // Both answers are known.
}

TEST_F(CublasLt, JoinsPartsOfASumInNoFewerBitsThanTheyHave) {
  const auto schemes = [&](DType dtype, bool wide_c) {
    EXPECT_THAT(Multiply({.m = 2, .n = 2, .k = 4, .dtype = dtype, .wide_c = wide_c}).status(),
                IsOk());
    return asked_.schemes;
  };
  EXPECT_EQ(schemes(DType::kBF16, /*wide_c=*/false), CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  EXPECT_EQ(schemes(DType::kBF16, /*wide_c=*/true), CUBLASLT_REDUCTION_SCHEME_MASK);
  EXPECT_EQ(schemes(DType::kF32, /*wide_c=*/false), CUBLASLT_REDUCTION_SCHEME_MASK);
}

TEST_F(CublasLt, AsksAgainWithoutMemoryWhereAProductOfF32IsNotSplit) {
  const auto memory_for = [&](const cublaslt::Product& product, std::int64_t times) {
    const std::int64_t before = asked_.algorithms;
    EXPECT_THAT(Multiply(product).status(), IsOk());
    EXPECT_EQ(asked_.algorithms, before + times);
    return asked_.memory;
  };
  EXPECT_THAT(Multiply(6, /*bias=*/false).status(), IsOk());
  EXPECT_EQ(memory_for({.m = 2, .n = 2, .k = 7}, 2), 0);
  EXPECT_EQ(memory_for({.m = 2, .n = 2, .k = kSplits}, 1), kMemory);
  EXPECT_EQ(memory_for({.m = 2, .n = 2, .k = kWantsMemory}, 2), kMemory) << "the first choice";
  EXPECT_EQ(memory_for({.m = 2, .n = 2, .k = 7, .tf32 = true}, 1), kMemory);
  EXPECT_EQ(memory_for({.m = 2, .n = 2, .k = 7, .dtype = DType::kBF16}, 1), kMemory);
}

TEST_F(CublasLt, SaysWhoTakesACallThatTheLibraryDoesNot) {
  for (const bool bias : {false, true}) {
    const auto refused = Multiply(kNeverMultiplies, bias);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(
        refused.status().message(),
        "cublaslt: choice of an algorithm: the fake says no; variant 'tiled' takes this call");
  }
  EXPECT_EQ(launches_, 0);
}

}  // namespace
}  // namespace gridclock
#endif
