// What must hold of the kernels' results whatever the numbers, by every variant on CPUs, and what
// they make of the numbers that bite.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/device/cpu/tbb_threads.h"
#include "proto/types/attribute.h"
#include "proto/types/generator.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kHuge = std::numeric_limits<double>::infinity();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

const Registry& Kernels() {
  static const Registry registry = *Registry::Create(BuiltInKernels());
  return registry;
}

struct Tensor {
  Shape shape;
  std::vector<float> data;
};

Tensor Uniform(const Shape& shape, double low, double high) {
  Tensor tensor{shape, std::vector<float>(static_cast<std::size_t>(Elements(shape)))};
  Generate({GeneratorKind::kUniform, low, high, 11}, DType::kF32, 0,
           std::as_writable_bytes(std::span(tensor.data)));
  return tensor;
}

Tensor Filled(std::int64_t n, float value) {
  return {{n}, std::vector<float>(static_cast<std::size_t>(n), value)};
}

// Scratch of a variant as its words say, or nothing where it does not take the call.
std::optional<std::vector<OperandValue>> ScratchOf(const RegisteredKernel& kernel,
                                                   const Variant& variant, const Binding& binding) {
  const auto chosen = ChooseVariant(kernel.spec, binding, {.kind = "cpu"}, variant.name);
  if (!chosen.ok()) return std::nullopt;
  const auto scratch = BindScratch((*chosen)->clauses, binding);
  EXPECT_THAT(scratch, IsOk());
  return scratch.ok() ? *scratch : std::vector<OperandValue>();
}

// Output 0 of one variant, whose elements are Out; nothing where it does not take the call.
template <typename Out = float>
std::optional<std::vector<Out>> ResultOf(const RegisteredKernel& kernel, const Variant& variant,
                                         std::vector<Tensor> inputs,
                                         std::vector<NamedAttribute> attributes) {
  std::vector<NamedOperand> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec spec{.dtype = DType::kF32, .shape = inputs[i].shape};
    named.push_back({kernel.spec.inputs[i].name, {.is_list = false, .tensors = {spec}}});
  }
  const auto binding = Bind(kernel.spec, named, attributes);
  EXPECT_THAT(binding, IsOk());
  if (!binding.ok()) return std::nullopt;
  const auto scratch_values = ScratchOf(kernel, variant, *binding);
  if (!scratch_values) return std::nullopt;
  std::vector<std::vector<std::byte>> memory;
  std::vector<OperandView> scratch;
  for (const OperandValue& value : *scratch_values) {
    memory.emplace_back(static_cast<std::size_t>(Bytes(value.tensors[0])));
    scratch.push_back({&value, {memory.back().data()}});
  }
  std::vector<OperandView> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in.push_back({&binding->inputs[i], {inputs[i].data.data()}});
  }
  std::vector<Out> out(static_cast<std::size_t>(Elements(binding->outputs[0].tensors[0].shape)));
  const std::vector<OperandView> outputs = {{&binding->outputs[0], {out.data()}}};
  TbbThreads threads(3);
  EXPECT_THAT(variant.launch({.binding = &*binding,
                              .inputs = in,
                              .outputs = outputs,
                              .scratch = scratch,
                              .threads = &threads}),
              IsOk());
  return out;
}

// check(result) for each variant.
template <typename Out = float, typename Check>
void ForEachVariant(const char* name, const std::vector<Tensor>& inputs,
                    const std::vector<NamedAttribute>& attributes, Check check) {
  const RegisteredKernel& kernel = *Kernels().Find(name);
  for (const Variant& variant : kernel.def.cpu) {
    SCOPED_TRACE(std::string(name) + "." + variant.name);
    const auto result = ResultOf<Out>(kernel, variant, inputs, attributes);
    if (result) check(*result);
  }
}

std::vector<float> Default(const char* name, const std::vector<Tensor>& inputs,
                           const std::vector<NamedAttribute>& attributes = {}) {
  const RegisteredKernel& kernel = *Kernels().Find(name);
  return ResultOf(kernel, kernel.def.cpu.back(), inputs, attributes).value_or(std::vector<float>());
}

// The mean of term(y) over each row of n.
template <typename Term>
std::vector<double> RowMeans(const std::vector<float>& y, std::int64_t n, Term term) {
  std::vector<double> means;
  for (std::size_t i = 0; i < y.size(); i += static_cast<std::size_t>(n)) {
    double sum = 0;
    for (std::size_t k = i; k < i + static_cast<std::size_t>(n); ++k) sum += term(double{y[k]});
    means.push_back(sum / static_cast<double>(n));
  }
  return means;
}

const std::int64_t kLengths[] = {1, 31, 32, 33, 1023, 4099, 40961};

TEST(Properties, RowsOfSoftmaxSumToOne) {
  for (const std::int64_t n : kLengths) {
    const auto one = 1 / static_cast<double>(n);
    ForEachVariant("softmax", {Uniform({3, n}, -50, 50)}, {}, [&](const auto& y) {
      EXPECT_THAT(RowMeans(y, n, [](double v) { return v; }),
                  Each(testing::DoubleNear(one, 1e-5 * one)));
    });
    ForEachVariant("log_softmax", {Uniform({3, n}, -50, 50)}, {}, [&](const auto& y) {
      EXPECT_THAT(RowMeans(y, n, [](double v) { return std::exp(v); }),
                  Each(testing::DoubleNear(one, 1e-4 * one)));
    });
  }
}

void ExpectNormal(const std::vector<float>& y, std::int64_t n, double near) {
  EXPECT_THAT(RowMeans(y, n, [](double v) { return v; }), Each(testing::DoubleNear(0, near)));
  EXPECT_THAT(RowMeans(y, n, [](double v) { return v * v; }), Each(testing::DoubleNear(1, near)));
}

TEST(Properties, RowsOfLayerNormHaveNoMeanAndOneAsVariance) {
  for (const std::int64_t n : {33, 1023, 40961}) {
    ForEachVariant("layernorm", {Uniform({3, n}, 0, 10), Filled(n, 1), Filled(n, 0)}, {},
                   [&](const auto& y) { ExpectNormal(y, n, 1e-4); });
  }
}

// Far from zero f32 has a thousandth left of each element, and sums in plain order have less.
TEST(Properties, RowsOfLayerNormAreNormalFarFromZeroToo) {
  for (const std::int64_t n : {33, 1023, 40961}) {
    ExpectNormal(
        Default("layernorm", {Uniform({3, n}, 10'000, 10'010), Filled(n, 1), Filled(n, 0)}), n,
        2e-3);
  }
}

TEST(Properties, RowsOfRmsNormHaveOneAsMeanSquare) {
  for (const std::int64_t n : kLengths) {
    ForEachVariant("rmsnorm", {Uniform({3, n}, 5, 7), Filled(n, 1)}, {}, [&](const auto& y) {
      EXPECT_THAT(RowMeans(y, n, [](double v) { return v * v; }),
                  Each(testing::DoubleNear(1, 1e-5)));
    });
  }
}

TEST(Properties, TransposedTwiceIsTheSame) {
  for (const Shape& shape : {Shape{33, 65}, Shape{128, 256}, Shape{3, 70, 5}, Shape{4, 33, 2, 7}}) {
    const Tensor x = Uniform(shape, -1, 1);
    for (std::int64_t i = 0; i < std::ssize(shape); ++i) {
      for (std::int64_t j = 0; j < std::ssize(shape); ++j) {
        const std::vector<NamedAttribute> swap = {{"i", i}, {"j", j}};
        Shape swapped = shape;
        std::swap(swapped[static_cast<std::size_t>(i)], swapped[static_cast<std::size_t>(j)]);
        ForEachVariant("transpose", {x}, swap, [&](const auto& y) {
          EXPECT_EQ(Default("transpose", {{swapped, y}}, swap), x.data);
        });
      }
    }
  }
}

TEST(Properties, TheLastOfACumsumIsTheSumAndEachStepIsAnElement) {
  for (const std::int64_t n : kLengths) {
    const Tensor x = Uniform({n}, 0, 1);
    const std::vector<float> sum = Default("sum", {x});
    ForEachVariant("cumsum", {x}, {}, [&](const auto& y) {
      EXPECT_NEAR(y.back(), sum[0], 1e-4 * sum[0]);
      EXPECT_EQ(y.front(), x.data.front());
      for (std::size_t k = 1; k < y.size(); ++k) {
        ASSERT_NEAR(y[k] - y[k - 1], x.data[k], 1e-6 * (1 + y[k])) << k;
      }
    });
  }
}

TEST(Properties, TheMaximumStandsWhereArgmaxSays) {
  const std::int64_t n = 33;
  for (const std::int64_t axis : {0, 1, 2}) {
    const Tensor x = Uniform({n, n, n}, -1, 1);
    const std::vector<NamedAttribute> along = {{"axis", axis}};
    const std::vector<float> largest = Default("max", {x}, along);
    const std::int64_t stride = axis == 0 ? n * n : axis == 1 ? n : 1;
    ForEachVariant<std::int64_t>("argmax", {x}, along, [&](const auto& places) {
      for (std::int64_t i = 0; i < n * n; ++i) {
        const std::int64_t first = i / stride * stride * n + i % stride;
        const auto at =
            static_cast<std::size_t>(first + places[static_cast<std::size_t>(i)] * stride);
        EXPECT_EQ(x.data[at], largest[static_cast<std::size_t>(i)]) << i;
      }
    });
  }
}

TEST(Properties, TheFirstOfEqualOnesAndTheFirstNaNCount) {
  const auto place_in = [](std::vector<float> row) {
    std::vector<std::int64_t> places;
    const auto n = static_cast<std::int64_t>(row.size());
    ForEachVariant<std::int64_t>("argmax", {{{n}, row}}, {},
                                 [&](const auto& y) { places.push_back(y[0]); });
    // Again as a column beside others.
    std::vector<float> columns;
    for (const float x : row) columns.insert(columns.end(), {x, x, x});
    ForEachVariant<std::int64_t>(
        "argmax", {{{n, 3}, columns}}, {{"axis", std::int64_t{0}}},
        [&](const auto& y) { places.insert(places.end(), y.begin(), y.end()); });
    for (const std::int64_t place : places) EXPECT_EQ(place, places.front());
    return places.front();
  };
  EXPECT_EQ(place_in({1, 3, 2, 3, 3}), 1);
  EXPECT_EQ(place_in({-0.0F, 0.0F}), 0);
  EXPECT_EQ(place_in({-kInf, -kInf, -kInf}), 0);
  EXPECT_EQ(place_in({kInf, 5, kNaN, kInf, kNaN}), 2);
  std::vector<float> long_row(100'000, -kInf);
  EXPECT_EQ(place_in(long_row), 0);
  long_row[99'998] = long_row[99'999] = -5;
  EXPECT_EQ(place_in(long_row), 99'998);
  long_row[70'000] = kNaN;
  EXPECT_EQ(place_in(long_row), 70'000);
}

TEST(Properties, AMeanIsRightAsLongAsItsSumHolds) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(Default("mean", {Filled(3, kLeast)}), ElementsAre(kLeast));
  EXPECT_THAT(Default("mean", {Filled(2, most / 4)}), ElementsAre(most / 4));
  EXPECT_THAT(Default("mean", {Filled(4, most / 2)}), ElementsAre(kInf));
  ForEachVariant("mean", {{{0}, {}}}, {}, [](const auto& y) { EXPECT_TRUE(std::isnan(y[0])); });
}

// Of an element alone, and of equal ones whose sums are exact.
TEST(Properties, ARowOfEqualElementsIsTheBias) {
  const auto expect_bias = [](std::int64_t n, float value) {
    SCOPED_TRACE(value);
    ForEachVariant("layernorm", {Filled(n, value), Filled(n, 2), Filled(n, 0.5F)},
                   {{"eps", 1e-300}}, [](const auto& y) { EXPECT_THAT(y, Each(0.5F)); });
  };
  for (const float value : {0.0F, -0.0F, kLeast, 12345.678F, -3e8F}) expect_bias(1, value);
  for (const std::int64_t n : {33, 1024, 20'000}) {
    for (const float value : {0.0F, -0.0F, kLeast, 1.0F}) expect_bias(n, value);
  }
}

Tensor Identity(std::int64_t n) {
  Tensor tensor{{n, n}, std::vector<float>(static_cast<std::size_t>(n * n))};
  for (std::int64_t i = 0; i < n; ++i) tensor.data[static_cast<std::size_t>(i * n + i)] = 1;
  return tensor;
}

TEST(Properties, AProductWithTheIdentityIsTheMatrix) {
  const std::vector<NamedAttribute> turned = {{"tb", true}};
  for (const std::int64_t n : {1, 31, 33, 127}) {
    const Tensor x = Uniform({70, n}, -1, 1);
    const std::vector<float> transposed = Default("transpose", {x});
    ForEachVariant("matmul", {x, Identity(n)}, {}, [&](const auto& y) { EXPECT_EQ(y, x.data); });
    ForEachVariant("matmul", {x, Identity(n)}, turned,
                   [&](const auto& y) { EXPECT_EQ(y, x.data); });
    ForEachVariant("matmul", {Identity(n), x}, turned,
                   [&](const auto& y) { EXPECT_EQ(y, transposed); });
  }
}

TEST(Properties, AProductWithBiasAndGeluIsTheThreeOneAfterTheOther) {
  for (const char* form : {"tanh", "none"}) {
    const std::vector<NamedAttribute> by = {{"approximate", std::string(form)}};
    const Tensor a = Uniform({37, 300}, -1, 1), b = Uniform({300, 65}, -1, 1);
    const Tensor bias = Uniform({65}, -3, 3);
    std::vector<float> sums = Default("matmul", {a, b});
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += bias.data[i % 65];
    const std::vector<float> want = Default("gelu", {{{37, 65}, sums}}, by);
    ForEachVariant("matmul_bias_gelu", {a, b, bias}, by, [&](const auto& y) {
      EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-4F), want));
    });
  }
}

TEST(Properties, WhatMinusInfinityAndNothingMakeOfAProductWithGelu) {
  const Tensor nothing{{2, 0}, {}}, bias{{3}, {-kInf, 0, kInf}};
  ForEachVariant("matmul_bias_gelu", {nothing, {{0, 3}, {}}, bias}, {}, [](const auto& y) {
    EXPECT_THAT(y, ElementsAre(-0.0F, 0.0F, kInf, -0.0F, 0.0F, kInf));
    EXPECT_TRUE(std::signbit(y[0]));
  });
}

const std::vector<NamedAttribute> kManhattan = {{"p", 1.0}};

TEST(Properties, DistancesAreSymmetricAndThoseToThemselvesAreNothing) {
  const std::size_t n = 67;
  const Tensor x = Uniform({67, 41}, 9'999, 10'001);
  for (const auto& attributes : {std::vector<NamedAttribute>(), kManhattan}) {
    const std::vector<float> d = Default("cdist", {x, x}, attributes);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(d[i * n + i], 0) << i;
      for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(d[i * n + j], d[j * n + i]);
    }
  }
}

TEST(Properties, ADistanceOfOneDimensionIsADifference) {
  const Tensor a{{3, 1}, {5, -2, 1e18F}}, b{{2, 1}, {1, 5}};
  for (const auto& attributes : {std::vector<NamedAttribute>(), kManhattan}) {
    ForEachVariant("cdist", {a, b}, attributes,
                   [](const auto& d) { EXPECT_THAT(d, ElementsAre(4, 0, 3, 7, 1e18F, 1e18F)); });
  }
}

// The product form loses them: 10,000^2 has 8 as its last place.
TEST(Properties, DistancesOfNearRowsFarFromZeroAreRight) {
  const Tensor a{{1, 3}, {10'000, 10'000, 10'000}}, b{{1, 3}, {10'001, 10'002, 9'998}};
  EXPECT_THAT(Default("cdist", {a, b}), ElementsAre(3));
  EXPECT_THAT(Default("cdist", {a, b}, kManhattan), ElementsAre(5));
}

// What the notes say of squares that f32 does not hold.
TEST(Properties, TinyDifferencesHaveNoDistanceAndHugeOnesAnInfiniteOne) {
  const Tensor x{{3, 1}, {1e-23F, 1e-18F, 2e19F}}, zero{{1, 1}, {0}};
  EXPECT_THAT(Default("cdist", {x, zero}), ElementsAre(0, testing::FloatEq(1e-18F), kInf));
  EXPECT_THAT(Default("cdist", {x, zero}, kManhattan), ElementsAre(1e-23F, 1e-18F, 2e19F));
}

TEST(Properties, ShapesThatDoNotFitAreRefusedByTheNameOfTheDimension) {
  const auto refusal = [](const char* name, const std::vector<Shape>& shapes) {
    const KernelSpec& spec = Kernels().Find(name)->spec;
    std::vector<NamedOperand> inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      inputs.push_back(
          {spec.inputs[i].name, {.is_list = false, .tensors = {{DType::kF32, shapes[i]}}}});
    }
    return std::string(Bind(spec, inputs, {}).status().message());
  };
  EXPECT_THAT(refusal("cdist", {{3, 4}, {2, 5}}), HasSubstr("'b': D is 4 elsewhere, 5 here"));
  EXPECT_THAT(refusal("cdist", {{7, 3, 4}, {6, 2, 4}}), HasSubstr("'b': * is [7]"));
  EXPECT_THAT(refusal("matmul_bias_gelu", {{3, 4}, {4, 5}, {3}}),
              HasSubstr("'bias': N is 5 elsewhere, 3 here"));
}

// 1e300 would be infinite without a word.
TEST(Properties, FactorsThatF32DoesNotHoldAreRefusedWhereItIsWhatIsComputedIn) {
  const auto told = [](const char* name, const char* attribute, DType dtype, bool is_list) {
    const RegisteredKernel& kernel = *Kernels().Find(name);
    std::vector<NamedOperand> inputs;
    for (const OperandSpec& input : kernel.spec.inputs) {
      inputs.push_back({input.name, {.is_list = is_list, .tensors = {{dtype, {3}}}}});
    }
    const auto binding = Bind(kernel.spec, inputs, {{attribute, -1e300}});
    EXPECT_THAT(binding, IsOk());
    return kernel.def.validate(*binding);
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_EQ(told("scale", "factor", dtype, false).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(told("foreach_add", "alpha", dtype, true).message()),
                HasSubstr("attribute 'alpha': want at most 3.4e38"));
  }
  EXPECT_THAT(told("scale", "factor", DType::kF64, false), IsOk());
  EXPECT_THAT(told("foreach_add", "alpha", DType::kF64, true), IsOk());
}

// By an infinite rate an element without a gradient would be NaN.
TEST(Properties, RatesThatF32DoesNotHoldAreRefused) {
  const auto told = [](const char* name, const std::vector<NamedAttribute>& attributes) {
    const RegisteredKernel& kernel = *Kernels().Find(name);
    std::vector<NamedOperand> inputs;
    for (const OperandSpec& input : kernel.spec.inputs) {
      inputs.push_back({input.name, {.is_list = true, .tensors = {{DType::kF32, {3}}}}});
    }
    const auto binding = Bind(kernel.spec, inputs, attributes);
    EXPECT_THAT(binding, IsOk());
    return kernel.def.validate(*binding);
  };
  for (const char* name : {"sgd", "adam", "adamw"}) {
    for (const char* attribute : {"lr", "weight_decay"}) {
      EXPECT_THAT(std::string(told(name, {{attribute, 1e39}}).message()),
                  HasSubstr(absl::StrCat("attribute '", attribute, "': want at most 3.4e38")))
          << name;
    }
    EXPECT_THAT(told(name, {{"lr", 3e35}}), IsOk()) << name;
  }
  EXPECT_THAT(told("sgd", {{"lr", 3e38}}), IsOk());
  for (const char* name : {"adam", "adamw"}) {
    EXPECT_THAT(std::string(told(name, {{"lr", 1e38}, {"beta1", 0.999}}).message()),
                HasSubstr("lr / (1 - beta1^step)"));
    EXPECT_THAT(told(name, {{"lr", 1e38}, {"beta1", 0.0}}), IsOk());
    EXPECT_EQ(told(name, {{"lr", 1e30}, {"weight_decay", 1e30}}).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

using Values = std::vector<AttributeValue>;

bool IsWhole(const AttributeSpec& spec) {
  return spec.type == AttributeSpec::Type::kI64;
}

// The least and the most that the range of a number lets pass.
Values EndsOf(const AttributeSpec& spec) {
  const AttributeSpec::Range& range = *spec.range;
  if (IsWhole(spec)) {
    return {range.low_int + (range.low_open ? 1 : 0), range.high_int - (range.high_open ? 1 : 0)};
  }
  return {range.low_open ? std::nextafter(range.low, kHuge) : range.low,
          range.high_open ? std::nextafter(range.high, -kHuge) : range.high};
}

Values JustOutside(const AttributeSpec& spec) {
  const Values ends = EndsOf(spec);
  if (!IsWhole(spec)) {
    return {std::nextafter(std::get<double>(ends[0]), -kHuge),
            std::nextafter(std::get<double>(ends[1]), kHuge), std::nan("")};
  }
  Values outside = {0.5};
  const auto low = std::get<std::int64_t>(ends[0]), high = std::get<std::int64_t>(ends[1]);
  if (low > std::numeric_limits<std::int64_t>::min()) outside.emplace_back(low - 1);
  if (high < std::numeric_limits<std::int64_t>::max()) outside.emplace_back(high + 1);
  return outside;
}

Values WrongOnes(const AttributeSpec& spec) {
  Values wrong = spec.range ? JustOutside(spec) : Values();
  const std::string unknown = "neither";
  wrong.emplace_back(unknown);
  if (spec.range) return wrong;
  wrong.emplace_back(std::int64_t{77});
  if (spec.type != AttributeSpec::Type::kDType) wrong.emplace_back(DType::kF32);
  return wrong;
}

Values RightOnes(const AttributeSpec& spec) {
  if (spec.range) return EndsOf(spec);
  if (!spec.allowed.empty()) return spec.allowed;
  if (spec.type == AttributeSpec::Type::kBool) return {true, false};
  if (spec.type == AttributeSpec::Type::kDType) return {DType::kF32};
  return {spec.words.begin(), spec.words.end()};
}

TEST(Properties, AttributesAreHeldToTheirRanges) {
  for (const auto& [name, kernel] : Kernels().kernels()) {
    for (const AttributeSpec& attribute : kernel.spec.attributes) {
      const Values right = RightOnes(attribute);
      EXPECT_THAT(right, testing::Not(testing::IsEmpty())) << name << ": " << attribute.name;
      for (AttributeValue value : right)
        EXPECT_THAT(CheckAttribute(attribute, value), IsOk()) << name;
      for (AttributeValue value : WrongOnes(attribute)) {
        EXPECT_THAT(CheckAttribute(attribute, value),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr(absl::StrCat("attribute '", attribute.name, "': want "))))
            << name << ": " << ToText(value);
      }
    }
  }
}

// What the last that is right and the first that is wrong are, by hand.
TEST(Properties, AttributesHaveTheRangesThatArePublished) {
  const struct {
    const char *kernel, *attribute;
    AttributeValue right, wrong;
  } table[] = {{"adam", "beta2", 0.0, 1.0},
               {"adam", "eps", 0.0, -1e-9},
               {"adamw", "beta1", 0.999, -0.001},
               {"adamw", "weight_decay", 0.0, -0.01},
               {"adam", "step", std::int64_t{1}, std::int64_t{0}},
               {"sgd", "lr", 0.0, -1e-3},
               {"sgd", "arg_bytes", std::int64_t{32764}, std::int64_t{32763}},
               {"foreach_add", "alpha", -1e300, kHuge},
               {"foreach_mul", "arg_bytes", std::int64_t{4096}, std::int64_t{4097}},
               {"cdist", "p", 1.0, 1.5},
               {"layernorm", "eps", 1.0, 0.0},
               {"rmsnorm", "eps", 1e-6, 1.001},
               {"pow", "exponent", -0.5, -kHuge},
               {"scale", "factor", 0.0, std::nan("")},
               {"sum", "axis", std::int64_t{-8}, std::int64_t{8}},
               {"transpose", "i", std::int64_t{7}, std::int64_t{-9}},
               {"transpose", "j", std::int64_t{-8}, std::int64_t{8}},
               {"matmul", "ta", true, std::int64_t{1}},
               {"matmul", "tb", false, std::string("no")},
               {"gelu", "approximate", std::string("none"), std::string("erf")},
               {"cast", "to", DType::kF8E4M3, std::string("f8")},
               {"spin", "ns", std::int64_t{600'000'000'000}, std::int64_t{600'000'000'001}}};
  for (const auto& row : table) {
    const auto& attributes = Kernels().Find(row.kernel)->spec.attributes;
    const auto spec = std::ranges::find(attributes, row.attribute, &AttributeSpec::name);
    ASSERT_NE(spec, attributes.end()) << row.kernel << ": " << row.attribute;
    AttributeValue right = row.right, wrong = row.wrong;
    EXPECT_THAT(CheckAttribute(*spec, right), IsOk()) << row.kernel << ": " << row.attribute;
    EXPECT_EQ(CheckAttribute(*spec, wrong).code(), absl::StatusCode::kInvalidArgument)
        << row.kernel << ": " << row.attribute;
  }
}

}  // namespace
}  // namespace gridclock
