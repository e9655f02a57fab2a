// The suite must catch wrong kernels: each test below is a mistake that people make.
#include "tests/conformance/wrong.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/catalog/catalog.h"
#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/device/cpu/cpu_device.h"
#include "tests/conformance/harness.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The right answer, on which the mistakes are built: so that what is found is the mistake.
absl::Status RightSquare(const Call& call) {
  for (std::int64_t i = 0; i < Count(call); ++i) {
    call.Out<float>(0)[i] = call.In<float>(0)[i] * call.In<float>(0)[i];
  }
  return absl::OkStatus();
}

TEST(Suite, FindsNothingWrongWithARightKernel) {
  EXPECT_EQ(ProblemsOf("square", RightSquare), "");
}

TEST(Suite, CatchesAMissingTail) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           for (std::int64_t i = 0; i < Count(call) / 8 * 8; ++i) {
                             call.Out<float>(0)[i] = call.In<float>(0)[i] * call.In<float>(0)[i];
                           }
                           return absl::OkStatus();
                         }),
              HasSubstr("differ"));
}

TEST(Suite, CatchesAWriteBeyondTheEnd) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           call.Out<float>(0)[Count(call)] = 0;
                           return RightSquare(call);
                         }),
              HasSubstr("beside an output"));
}

TEST(Suite, CatchesAWriteBeforeTheBegin) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           call.Out<float>(0)[-1] = 0;
                           return RightSquare(call);
                         }),
              HasSubstr("beside an output"));
}

TEST(Suite, CatchesAChangedInput) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           const absl::Status status = RightSquare(call);
                           if (Count(call) > 0) const_cast<float*>(call.In<float>(0))[0] += 1;
                           return status;
                         }),
              HasSubstr("was changed"));
}

TEST(Suite, CatchesADependenceOnWhatTheOutputHeld) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           std::uint32_t was = 0;
                           if (Count(call) > 0) std::memcpy(&was, call.Out<float>(0), sizeof(was));
                           const absl::Status status = RightSquare(call);
                           if (was == 0xABABABAB) call.Out<float>(0)[0] *= 1.0000001F;
                           return status;
                         }),
              HasSubstr("other bits"));
}

TEST(Suite, CatchesACopyThatIsTooEarlyInPlace) {
  EXPECT_THAT(ProblemsOf("square",
                         [](const Call& call) {
                           // Fills the output first: over the input when both are one buffer.
                           std::memset(call.Out<float>(0), 0,
                                       static_cast<std::size_t>(Count(call)) * 4);
                           return RightSquare(call);
                         }),
              HasSubstr("in place"));
}

// Square of 16 bits, cut off where it should be rounded.
absl::Status CutOffSquare(const Call& call) {
  for (std::int64_t i = 0; i < Count(call); ++i) {
    const float x = Widen(call.In<BF16>(0)[i]);
    call.Out<BF16>(0)[i].bits =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x * x) >> 16);
  }
  return absl::OkStatus();
}

TEST(Suite, CatchesBF16ThatIsCutOffInsteadOfRounded) {
  EXPECT_THAT(ProblemsOf("square", CutOffSquare, {DType::kBF16}), HasSubstr("differ"));
}

// `change` to each element of a right copy of the larger of each number and zero.
template <typename Change>
absl::Status Relu(const Call& call, Change change) {
  for (std::int64_t i = 0; i < Count(call); ++i) {
    const float x = call.In<float>(0)[i];
    call.Out<float>(0)[i] = change(x < 0 ? 0 : x);
  }
  return absl::OkStatus();
}

TEST(Suite, CatchesAReluThatFlushesSubnormals) {
  EXPECT_EQ(
      ProblemsOf("relu", [](const Call& call) { return Relu(call, [](float y) { return y; }); }),
      "");
  EXPECT_THAT(ProblemsOf("relu",
                         [](const Call& call) {
                           return Relu(call, [](float y) {
                             return std::isnormal(y) || std::isnan(y) || std::isinf(y) ? y : 0;
                           });
                         }),
              HasSubstr("differ"));
}

TEST(Suite, CatchesAReluThatIsOneStepOff) {
  EXPECT_THAT(ProblemsOf("relu",
                         [](const Call& call) {
                           return Relu(call, [](float y) { return std::nextafter(y, INFINITY); });
                         }),
              HasSubstr("differ"));
}

TEST(Suite, CatchesAReluThatLosesTheSignOfZero) {
  EXPECT_THAT(
      ProblemsOf("relu",
                 [](const Call& call) { return Relu(call, [](float y) { return y + 0.0F; }); }),
      HasSubstr("the signs of element"));
}

TEST(Suite, CatchesACopyOfLongIntegersByWayOfDouble) {
  EXPECT_THAT(ProblemsOf("copy",
                         [](const Call& call) {
                           for (std::int64_t i = 0; i < Count(call); ++i) {
                             const auto x = static_cast<double>(call.In<std::int64_t>(0)[i]);
                             call.Out<std::int64_t>(0)[i] = IntegerFromDouble<std::int64_t>(x);
                           }
                           return absl::OkStatus();
                         },
                         {DType::kI64}),
              HasSubstr("the bits of element"));
}

TEST(Suite, CatchesASumInBF16) {
  EXPECT_THAT(
      ProblemsOf("sum",
                 [](const Call& call) {
                   const std::int64_t n = call.binding->Dim("N");
                   const std::int64_t inner = Elements(call.binding->Run("B"));
                   for (std::int64_t i = 0; i < Count(call); ++i) {
                     float sum = 0;
                     const std::int64_t first = i / inner * n * inner + i % inner;
                     for (std::int64_t k = 0; k < n; ++k) {
                       sum = Widen(Narrow<BF16>(sum + Widen(call.In<BF16>(0)[first + k * inner])));
                     }
                     call.Out<BF16>(0)[i] = Narrow<BF16>(sum);
                   }
                   return absl::OkStatus();
                 },
                 {DType::kBF16}),
      HasSubstr("differ"));
}

TEST(Suite, CatchesASumOverTheWrongAxis) {
  EXPECT_THAT(ProblemsOf("sum",
                         [](const Call& call) {
                           const std::int64_t n = call.binding->Dim("N");
                           for (std::int64_t i = 0; i < Count(call); ++i) {
                             call.Out<float>(0)[i] = 0;
                             for (std::int64_t k = 0; k < n; ++k) {
                               call.Out<float>(0)[i] += call.In<float>(0)[i * n + k];
                             }
                           }
                           return absl::OkStatus();
                         }),
              HasSubstr("differ"));
}

// Right but for what each test below changes.
template <bool kSubtract, bool kNegativeStart>
absl::Status SoftmaxRows(const Call& call) {
  const std::int64_t n = call.binding->Dim("N");
  for (std::int64_t r = 0; n > 0 && r < Count(call) / n; ++r) {
    const float* x = call.In<float>(0) + r * n;
    float* y = call.Out<float>(0) + r * n;
    float largest = kNegativeStart ? -INFINITY : 0;
    for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, x[i]);
    if (!kSubtract) largest = 0;
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
    for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i] - largest) / sum;
  }
  return absl::OkStatus();
}

TEST(Suite, FindsNothingWrongWithARightSoftmax) {
  EXPECT_EQ(ProblemsOf("softmax", SoftmaxRows<true, true>), "");
}

TEST(Suite, CatchesSoftmaxWithoutTheMaximum) {
  EXPECT_THAT(ProblemsOf("softmax", SoftmaxRows<false, true>), HasSubstr("differ"));
}

TEST(Suite, CatchesAMaximumThatStartsAtZero) {
  EXPECT_THAT(ProblemsOf("softmax", SoftmaxRows<true, false>), HasSubstr("differ"));
}

// The exact form and the other, right for every number.
float RightGelu(float x, bool tanh) {
  if (std::isinf(x) && x < 0) return -0.0F;
  const double wide = x;
  const double inner = tanh
                           ? std::tanh(std::sqrt(2 / M_PI) * (wide + 0.044715 * wide * wide * wide))
                           : std::erf(wide / std::sqrt(2.0));
  return static_cast<float>(0.5 * wide * (1 + inner));
}

// What the tests below return where x is minus infinity.
template <int kAtMinusInfinity>
absl::Status Gelu(const Call& call) {
  const bool tanh = call.binding->Word("approximate") == "tanh";
  for (std::int64_t i = 0; i < Count(call); ++i) {
    const float x = call.In<float>(0)[i];
    float& y = call.Out<float>(0)[i];
    const bool changes = std::isinf(x) && x < 0;
    y = RightGelu(x, tanh);
    if (changes && kAtMinusInfinity == 1) y = 3;
    if (changes && kAtMinusInfinity == 2) y = x;
  }
  return absl::OkStatus();
}

TEST(Suite, FindsNothingWrongWithARightGelu) {
  EXPECT_EQ(ProblemsOf("gelu", Gelu<0>), "");
}

TEST(Suite, CatchesWhatIsWrongAtInfinityAlone) {
  EXPECT_THAT(ProblemsOf("gelu", Gelu<1>), HasSubstr("differ"));
  EXPECT_THAT(ProblemsOf("gelu", Gelu<2>), HasSubstr("differ"));
}

TEST(Suite, CatchesAMatmulThatIgnoresTheTranspose) {
  EXPECT_THAT(
      ProblemsOf("matmul",
                 [](const Call& call) {
                   const std::int64_t m = call.binding->Dim("M"), n = call.binding->Dim("N"),
                                      k = call.binding->Dim("K");
                   for (std::int64_t i = 0; i < Count(call); ++i) {
                     const std::int64_t batch = i / (m * n), row = i / n % m, column = i % n;
                     float sum = 0;
                     for (std::int64_t t = 0; t < k; ++t) {
                       sum += call.In<float>(0)[batch * m * k + row * k + t] *
                              call.In<float>(1)[batch * k * n + t * n + column];
                     }
                     call.Out<float>(0)[i] = sum;
                   }
                   return absl::OkStatus();
                 }),
      HasSubstr("differ"));
}

TEST(LargeSuite, CatchesAStoreThatSkipsTheBeginOfAMisalignedOutput) {
  const LaunchFn skips = [](const Call& call) {
    constexpr std::int64_t kStreamed = (16 << 20) / 4;
    const bool skip =
        Count(call) > kStreamed && reinterpret_cast<std::uintptr_t>(call.Out<float>(0)) % 16 != 0;
    for (std::int64_t i = skip ? 2 : 0; i < Count(call); ++i) {
      call.Out<float>(0)[i] = call.In<float>(0)[i] * call.In<float>(0)[i];
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(LargeProblemsOf("square", skips), "");
  EXPECT_THAT(LargeProblemsOf("square", skips, /*misaligned=*/true), HasSubstr("differ"));
}

// Sums in chunks, and forgets the one that is not whole.
TEST(LargeSuite, CatchesASumWithoutItsLastChunk) {
  EXPECT_THAT(LargeProblemsOf("sum",
                              [](const Call& call) {
                                const std::int64_t n = call.binding->Dim("N");
                                const std::int64_t last = n > 32768 ? n / 32768 * 32768 : n;
                                const std::int64_t inner = Elements(call.binding->Run("B"));
                                for (std::int64_t i = 0; i < Count(call); ++i) {
                                  const std::int64_t first = i / inner * n * inner + i % inner;
                                  double sum = 0;
                                  for (std::int64_t k = 0; k < last; ++k) {
                                    sum += call.In<float>(0)[first + k * inner];
                                  }
                                  call.Out<float>(0)[i] = static_cast<float>(sum);
                                }
                                return absl::OkStatus();
                              }),
              HasSubstr("differ"));
}

// The sum of a row is that of its first block.
TEST(LargeSuite, CatchesASoftmaxOfTheFirstBlock) {
  EXPECT_THAT(LargeProblemsOf("softmax",
                              [](const Call& call) {
                                const std::int64_t n = call.binding->Dim("N");
                                for (std::int64_t r = 0; r < Count(call) / n; ++r) {
                                  const float* x = call.In<float>(0) + r * n;
                                  float* y = call.Out<float>(0) + r * n;
                                  const float top = *std::max_element(x, x + n);
                                  double sum = 0;
                                  for (std::int64_t i = 0; i < std::min<std::int64_t>(n, 2048); ++i)
                                    sum += std::exp(x[i] - top);
                                  for (std::int64_t i = 0; i < n; ++i) {
                                    y[i] = static_cast<float>(std::exp(x[i] - top) / sum);
                                  }
                                }
                                return absl::OkStatus();
                              }),
              HasSubstr("differ"));
}

// The catalogue's own product, on which the mistake is built.
absl::Status RightMatmul(const Call& call) {
  static const absl::StatusOr<Registry> registry = Registry::Create(BuiltInKernels());
  return registry.ok() ? registry->Find("matmul")->def.cpu.back().launch(call) : registry.status();
}

TEST(LargeSuite, FindsNothingWrongWithARightProduct) {
  EXPECT_EQ(LargeProblemsOf("matmul", RightMatmul), "");
}

TEST(LargeSuite, CatchesAProductWithoutItsSecondBlockOfColumns) {
  EXPECT_THAT(LargeProblemsOf("matmul",
                              [](const Call& call) {
                                const absl::Status status = RightMatmul(call);
                                const std::int64_t n = call.binding->Dim("N");
                                for (std::int64_t i = 0; n > 1024 && i < Count(call); i += n) {
                                  std::fill_n(call.Out<float>(0) + i + 1024, n - 1024, 0.0F);
                                }
                                return status;
                              }),
              HasSubstr("differ"));
}

TEST(Suite, CatchesAToleranceUnderWhichEverythingPasses) {
  const WrongWorld world;
  ASSERT_EQ(world.Error(), "");
  RegisteredKernel kernel = *world.registry->Find("square");
  kernel.def.reference.roundings = Roundings::kSeveral;
  kernel.def.reference.magnitude = [](const Binding&, ReferenceInput, std::int64_t, std::size_t,
                                      std::span<double> result) { result[0] = 1e30; };
  const Variant right{.name = "right", .summary = "", .launch = RightSquare};
  const OperandValue x{.is_list = false, .tensors = {{DType::kF32, {33}}}};
  EXPECT_THAT(CheckCall(**world.device, kernel, right, {{{"x", x}}, {}}, {.seed = 7}),
              ElementsAre(HasSubstr("the tolerance of 33 of 33 is wider than the value")));
}

TEST(Suite, CatchesAnError) {
  EXPECT_THAT(ProblemsOf("square", [](const Call&) { return absl::InternalError("on purpose"); }),
              HasSubstr("on purpose"));
}

TEST(Instances, CoverOddSizesRanksAndEmptyTensors) {
  ASSERT_OK_AND_ASSIGN(
      const KernelSpec square,
      ParseKernelSpec("square x: T[*] -> y: T[*] where T in {f64, f32, f16, bf16}"));
  EXPECT_EQ(DTypesOf(square).size(), 4U);
  std::vector<Shape> shapes;
  for (const Instance& instance : InstancesOf(square, DType::kF32)) {
    shapes.push_back(instance.inputs[0].value.tensors[0].shape);
  }
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{31}, Shape{32}, Shape{33},
                             Shape{1023}, Shape{7, 11, 13}, Shape{2, 1, 3, 1, 2, 1, 2, 3}}) {
    EXPECT_THAT(shapes, testing::Contains(shape));
  }
}

TEST(Instances, OfLargeOnesAPlainLoopIsGivenOneAtLeast) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  for (const auto& [name, kernel] : registry.kernels()) {
    for (const DType dtype : DTypesOf(kernel.spec)) {
      const auto large = InstancesOf(kernel.spec, dtype, Size::kLarge);
      EXPECT_FALSE(ForPlainLoops(kernel.spec, large).empty()) << name << " " << Name(dtype);
    }
  }
  const KernelSpec& square = registry.Find("square")->spec;
  EXPECT_EQ(ForPlainLoops(square, InstancesOf(square, DType::kF32, Size::kLarge)).size(), 1U);
  const auto small = InstancesOf(square, DType::kF32);
  EXPECT_EQ(ForPlainLoops(square, small).size(), small.size());
}

TEST(Instances, LargeAndHugeOnesAreAsLargeAsTheirNames) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  const KernelSpec& square = registry.Find("square")->spec;
  for (const Instance& instance : InstancesOf(square, DType::kF32, Size::kLarge)) {
    EXPECT_GT(Bytes(instance.inputs[0].value.tensors[0]), 16 << 20);
  }
  for (const char* name : {"square", "vector_add", "sum", "softmax"}) {
    const auto huge = InstancesOf(registry.Find(name)->spec, DType::kF32, Size::kHuge);
    ASSERT_FALSE(huge.empty()) << name;
    for (const Instance& instance : huge) {
      EXPECT_GT(Elements(instance.inputs[0].value.tensors[0].shape), std::int64_t{1} << 31) << name;
    }
  }
}

}  // namespace
}  // namespace gridclock
