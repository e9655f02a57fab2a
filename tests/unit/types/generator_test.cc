#include "proto/types/generator.h"

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proto/types/convert.h"
#include "proto/types/tensor_offsets.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Generator Seeded(const char* text, std::uint64_t seed) {
  Generator generator = *ParseGenerator(text);
  generator.seed = seed;
  return generator;
}

template <typename T>
std::vector<T> Make(const char* text, std::uint64_t seed, DType dtype, std::int64_t first,
                    std::size_t count) {
  std::vector<T> values(count);
  Generate(Seeded(text, seed), dtype, first, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(Generator, SpellsItselfAsItIsRead) {
  for (const char* text : {"zeros", "ones", "full:3", "arange", "randn", "uniform:-1:1.5",
                           "randint:0:10", "full:1e-05"}) {
    EXPECT_EQ(ToText(*ParseGenerator(text)), text);
  }
  for (const char* text :
       {"", "randm", "full", "full:x", "randn:1", "uniform:1", "uniform:1:2:3"}) {
    EXPECT_THAT(ParseGenerator(text), StatusIs(kInvalid, HasSubstr("want zeros, ones, full:V")));
  }
}

TEST(Generator, HasRules) {
  const auto valid = [](const char* text, DType dtype) {
    return Validate(*ParseGenerator(text), dtype);
  };
  EXPECT_THAT(valid("randn", DType::kF32), IsOk());
  EXPECT_THAT(valid("uniform:1:1", DType::kF32), StatusIs(kInvalid, HasSubstr("a < b")));
  EXPECT_THAT(valid("uniform:0:inf", DType::kF32), StatusIs(kInvalid, HasSubstr("finite")));
  EXPECT_THAT(valid("uniform:-1e308:1e308", DType::kF64),
              StatusIs(kInvalid, HasSubstr("want b - a of less than 1.8e308")));
  EXPECT_THAT(valid("uniform:nan:1", DType::kF32), StatusIs(kInvalid, HasSubstr("finite")));
  EXPECT_THAT(valid("randint:0:1.5", DType::kI32), StatusIs(kInvalid, HasSubstr("whole numbers")));
  EXPECT_THAT(valid("randint:-128:128", DType::kI8), IsOk());
  EXPECT_THAT(valid("randint:-128:129", DType::kI8),
              StatusIs(kInvalid, HasSubstr("b <= 128 for i8")));
  EXPECT_THAT(valid("randint:-1:2", DType::kBool), StatusIs(kInvalid, HasSubstr("a >= 0")));
  EXPECT_THAT(valid("randint:0:1e300", DType::kF64), StatusIs(kInvalid, HasSubstr("for f64")));
  EXPECT_THAT(Validate({.kind = static_cast<GeneratorKind>(77)}, DType::kF32),
              StatusIs(kInvalid, HasSubstr("unknown generator of kind 77")));
}

TEST(Generator, MakesPlainValues) {
  EXPECT_EQ(Make<float>("zeros", 1, DType::kF32, 0, 3), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(Make<std::int16_t>("ones", 1, DType::kI16, 0, 2), (std::vector<std::int16_t>{1, 1}));
  EXPECT_EQ(Make<double>("full:2.5", 1, DType::kF64, 9, 2), (std::vector<double>{2.5, 2.5}));
  EXPECT_EQ(Make<std::uint8_t>("arange", 1, DType::kU8, 254, 3),
            (std::vector<std::uint8_t>{254, 255, 255}));
  EXPECT_EQ(Make<std::int64_t>("arange", 1, DType::kI64, 5, 2), (std::vector<std::int64_t>{5, 6}));
}

// The contract: these values may never change. Computed by hand in Python from docs/generators.md.
TEST(Generator, MakesTheseVeryValues) {
  EXPECT_EQ(Make<double>("uniform:0:1", 42, DType::kF64, 0, 3),
            (std::vector<double>{0.5961188718302076, 0.1603653875985772, 0.16639780398145976}));
  EXPECT_EQ(Make<float>("randn", 42, DType::kF32, 0, 4),
            (std::vector<float>{0.243313879f, -0.992957294f, -0.96849823f, -1.66430449f}));
  EXPECT_EQ(Make<std::int32_t>("randint:-5:100", 7, DType::kI32, 0, 6),
            (std::vector<std::int32_t>{50, 26, 93, 87, 64, 31}));
}

class EveryDType : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(All, EveryDType, ::testing::ValuesIn(AllDTypes()),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST_P(EveryDType, PartsAreTheWholeWhereverItIsCut) {
  const auto size = static_cast<std::size_t>(SizeOf(GetParam()));
  for (const char* text :
       {"zeros", "ones", "full:1", "arange", "randn", "uniform:0:2", "randint:0:2"}) {
    const Generator generator = Seeded(text, 99);
    ASSERT_THAT(Validate(generator, GetParam()), IsOk());
    std::vector<std::byte> whole(1500 * size);
    Generate(generator, GetParam(), 0, whole);
    std::vector<std::byte> parts(whole.size());
    std::size_t first = 0;
    for (const std::size_t count : {1, 510, 2, 512, 475}) {
      Generate(generator, GetParam(), static_cast<std::int64_t>(first),
               std::span(parts).subspan(first * size, count * size));
      first += count;
    }
    EXPECT_EQ(parts, whole) << text;
  }
}

TEST_P(EveryDType, IsTheDoubleConverted) {
  const auto doubles = Make<double>("uniform:-300:300", 5, DType::kF64, 0, 700);
  std::vector<std::byte> made(700 * SizeOf(GetParam())), converted(made.size());
  Generate(Seeded("uniform:-300:300", 5), GetParam(), 0, made);
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    StoreFromDouble(GetParam(), converted.data(), static_cast<std::int64_t>(i), doubles[i]);
  }
  EXPECT_EQ(made, converted);
}

TEST(Generator, IsNormal) {
  const auto x = Make<double>("randn", 3, DType::kF64, 0, 1'000'000);
  double sum = 0, squares = 0, cubes = 0, fourths = 0;
  int beyond_three = 0;
  for (const double v : x) {
    sum += v;
    squares += v * v;
    cubes += v * v * v;
    fourths += v * v * v * v;
    beyond_three += std::abs(v) > 3;
  }
  EXPECT_NEAR(sum / 1e6, 0, 0.005);
  EXPECT_NEAR(squares / 1e6, 1, 0.008);
  EXPECT_NEAR(cubes / 1e6, 0, 0.02);
  EXPECT_NEAR(fourths / 1e6, 3, 0.06);
  EXPECT_NEAR(beyond_three, 2700, 260);
}

TEST(Generator, IsUniformWithinItsBounds) {
  const auto x = Make<double>("uniform:-2:6", 3, DType::kF64, 0, 100'000);
  double sum = 0;
  for (const double v : x) {
    ASSERT_GE(v, -2);
    ASSERT_LT(v, 6);
    sum += v;
  }
  EXPECT_NEAR(sum / 1e5, 2, 0.04);
}

TEST(Generator, ReachesEveryWholeNumberAndNoOther) {
  const auto x = Make<std::int8_t>("randint:-3:4", 3, DType::kI8, 0, 10'000);
  const std::set<std::int8_t> seen(x.begin(), x.end());
  EXPECT_EQ(seen, (std::set<std::int8_t>{-3, -2, -1, 0, 1, 2, 3}));
}

TEST(Generator, CoversAllOf64Bits) {
  const auto u = Make<std::uint64_t>("randint:0:18446744073709551616", 3, DType::kU64, 0, 1000);
  const auto i = Make<std::int64_t>("randint:-9223372036854775808:9223372036854775808", 3,
                                    DType::kI64, 0, 1000);
  EXPECT_EQ(static_cast<std::uint64_t>(i[0]), u[0] + (std::uint64_t{1} << 63));
  std::uint64_t any = 0, all = ~std::uint64_t{0};
  for (const std::uint64_t v : u) {
    any |= v;
    all &= v;
  }
  EXPECT_EQ(any, ~std::uint64_t{0});
  EXPECT_EQ(all, 0u);
}

TEST(Generator, SeedsMakeDifferentSequences) {
  // Seeds apart by the step of the counter must not give shifted copies.
  const auto a = Make<double>("uniform:0:1", 1, DType::kF64, 0, 100);
  const auto b = Make<double>("uniform:0:1", 1 + 0x9E3779B97F4A7C15, DType::kF64, 0, 100);
  const std::set<double> seen(a.begin(), a.end());
  for (const double v : b) EXPECT_EQ(seen.count(v), 0u);
}

TEST(Generator, FillsDisjointPartsFromSeveralThreads) {
  const Generator generator = Seeded("randn", 11);
  std::vector<float> whole(40'000), parts(40'000);
  Generate(generator, DType::kF32, 0, std::as_writable_bytes(std::span(whole)));
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Generate(generator, DType::kF32, t * 10'000,
               std::as_writable_bytes(std::span(parts).subspan(t * 10'000, 10'000)));
    });
  }
  threads.clear();
  EXPECT_EQ(parts, whole);
}

TEST(TensorOffsetsTest, AreThoseOfEachTensorOfAList) {
  const OperandValue list = {
      .is_list = true,
      .tensors = {{DType::kF32, {3}}, {DType::kF32, {0}}, {DType::kF64, {17}}, {DType::kU8, {65}}}};
  const std::vector<std::uint64_t> offsets = TensorOffsets(list);
  EXPECT_THAT(offsets, ElementsAre(0, 64, 64, 256));
  for (std::size_t i = 0; i < offsets.size(); ++i) EXPECT_EQ(offsets[i], TensorOffset(list, i));
}

}  // namespace
}  // namespace gridclock
