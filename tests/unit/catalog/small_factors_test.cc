// Products of numbers near or below the least normal one, at each CPU level: what some
// CPUs have for bf16 takes such numbers and sums for 0.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/device/cpu/tbb_threads.h"
#include "proto/types/convert.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/catalog/launch.h"

namespace gridclock {
namespace {

constexpr std::int64_t kM = 40, kN = 50, kK = 1024;
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::uint16_t> Filled(std::int64_t n, double value) {
  return std::vector<std::uint16_t>(static_cast<std::size_t>(n), BF16FromDouble(value));
}

class SmallFactors : public testing::Test {
 protected:
  // a b as doubles.
  std::vector<double> Product() {
    const auto registry = Registry::Create(BuiltInKernels());
    EXPECT_THAT(registry.status(), IsOk());
    const RegisteredKernel& kernel = *registry->Find("matmul");
    const auto matrix = [](std::int64_t rows, std::int64_t columns) {
      return OperandValue{.is_list = false, .tensors = {{DType::kBF16, {rows, columns}}}};
    };
    const auto binding =
        Bind(kernel.spec, {{"a", matrix(kM, kK)}, {"b", matrix(kK, kN)}}, /*attributes=*/{});
    EXPECT_THAT(binding.status(), IsOk());
    auto c = Filled(kM * kN, -1);
    TbbThreads threads(2);
    EXPECT_THAT(LaunchFastest(kernel, *binding, {a.data(), b.data(), c.data()}, threads), IsOk());
    std::vector<double> result;
    result.reserve(c.size());
    for (const std::uint16_t bits : c) result.push_back(double{BF16ToFloat(bits)});
    return result;
  }

  std::vector<std::uint16_t> a = Filled(kM * kK, 0), b = Filled(kK * kN, 0);
};

TEST_F(SmallFactors, SumsBelowTheNormalNumbersAddUp) {
  a = Filled(kM * kK, 0x1p-64);
  b = Filled(kK * kN, 0x1p-64);
  for (const double c : Product()) ASSERT_EQ(c, 0x1p-118);
}

TEST_F(SmallFactors, ProductsAreExactOnEitherSideOfTheBorder) {
  for (const int exponent : {-127, -126, -125, -114, -113, -112, -111, -110}) {
    SCOPED_TRACE(exponent);
    const int of_a = exponent / 2, of_b = exponent - of_a;
    a = Filled(kM * kK, std::ldexp(1, of_a));
    b = Filled(kK * kN, std::ldexp(1, of_b));
    for (const double c : Product()) ASSERT_EQ(c, std::ldexp(1, exponent + 10));
  }
}

// What is left is one unit of the last digits of both: 2^(exponent - 14).
TEST_F(SmallFactors, WhatIsLeftOfTermsThatCancelIsKept) {
  for (const int exponent : {-113, -112, -111}) {
    SCOPED_TRACE(exponent);
    const int of_a = exponent / 2, of_b = exponent - of_a;
    const double unit = 1 + 0x1p-7;
    a = Filled(kM * kK, 0);
    b = Filled(kK * kN, 0);
    const auto put = [&](std::int64_t k, double x, double y) {
      for (std::int64_t i = 0; i < kM; ++i) a[i * kK + k] = BF16FromDouble(std::ldexp(x, of_a));
      for (std::int64_t j = 0; j < kN; ++j) b[k * kN + j] = BF16FromDouble(std::ldexp(y, of_b));
    };
    put(0, unit, unit);  // 1 + 2^-6 + 2^-14
    put(1, -1, 1 + 0x1p-6);
    for (const double c : Product()) ASSERT_EQ(c, std::ldexp(1, exponent - 14));
  }
}

TEST_F(SmallFactors, OneSideMayBeSmallWhereTheOtherIsLarge) {
  a = Filled(kM * kK, 0x1p-100);
  b = Filled(kK * kN, 0x1p20);
  for (const double c : Product()) ASSERT_EQ(c, 0x1p-70);
}

TEST_F(SmallFactors, SubnormalNumbersCount) {
  constexpr std::int64_t kRow = 37, kColumn = 49, kTerm = 1000;
  a[kRow * kK + kTerm] = BF16FromDouble(0x1p-130);
  b[kTerm * kN + kColumn] = BF16FromDouble(0x1p120);
  EXPECT_EQ(Product()[kRow * kN + kColumn], 0x1p-10);
  b[kTerm * kN + kColumn] = BF16FromDouble(-kInf);
  EXPECT_EQ(Product()[kRow * kN + kColumn], -kInf) << "0 times an infinity would be NaN";
}

}  // namespace
}  // namespace gridclock
