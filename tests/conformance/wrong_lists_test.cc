// The suite must catch wrong kernels over lists and wrong casts: each test below is a mistake that
// people make.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/catalog/element.h"
#include "kernels/catalog/list_sizes.h"
#include "tests/conformance/wrong.h"

namespace gridclock {
namespace {

using testing::HasSubstr;

// --- Lists: right but for what each test changes ---

// The sum of each element of the lists, as `wrong` says it for tensor t and element i.
template <typename T, typename Wrong>
absl::Status AddLists(const Call& call, Wrong wrong) {
  const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
      call.Out<T>(0, t)[i] = wrong(call, t, i);
    }
  }
  return absl::OkStatus();
}

float RightSum(const Call& call, std::size_t t, std::int64_t i) {
  return call.In<float>(0, t)[i] +
         static_cast<float>(call.binding->F64("alpha")) * call.In<float>(1, t)[i];
}

TEST(Lists, NothingIsWrongWithARightSum) {
  EXPECT_EQ(
      ProblemsOf("foreach_add", [](const Call& call) { return AddLists<float>(call, RightSum); }),
      "");
}

TEST(Lists, CatchesTheNeighbourInTheList) {
  EXPECT_THAT(FirstProblemOf(
                  "foreach_add",
                  [](const Call& call) {
                    return AddLists<float>(call, [](const Call& c, std::size_t t, std::int64_t i) {
                      // Only where the next tensor is long enough for it.
                      const auto& all = c.outputs[0].value->tensors;
                      const bool next = t + 1 < all.size() && i < Elements(all[t + 1].shape);
                      return c.In<float>(0, t)[i] + static_cast<float>(c.binding->F64("alpha")) *
                                                        c.In<float>(1, next ? t + 1 : t)[i];
                    });
                  }),
              HasSubstr("differ"));
}

TEST(Lists, CatchesAForgottenFactor) {
  EXPECT_THAT(FirstProblemOf("foreach_add",
                             [](const Call& call) {
                               return AddLists<float>(
                                   call, [](const Call& c, std::size_t t, std::int64_t i) {
                                     return c.In<float>(0, t)[i] + c.In<float>(1, t)[i];
                                   });
                             }),
              HasSubstr("differ"));
}

// As if those that find no room in a launch's arguments were forgotten.
TEST(Lists, CatchesTensorsBeyondThoseOfALaunch) {
  EXPECT_THAT(FirstProblemOf("foreach_add",
                             [](const Call& call) {
                               const std::size_t room =
                                   static_cast<std::size_t>(list::TensorsOfALaunch(3, 4096));
                               const std::vector<TensorSpec>& tensors =
                                   call.outputs[0].value->tensors;
                               for (std::size_t t = 0; t < std::min(room, tensors.size()); ++t) {
                                 for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
                                   call.Out<float>(0, t)[i] = RightSum(call, t, i);
                                 }
                               }
                               return absl::OkStatus();
                             }),
              HasSubstr("differ"));
}

TEST(Lists, CatchesTheTailOfATensor) {
  EXPECT_THAT(FirstProblemOf("foreach_add",
                             [](const Call& call) {
                               const std::vector<TensorSpec>& tensors =
                                   call.outputs[0].value->tensors;
                               for (std::size_t t = 0; t < tensors.size(); ++t) {
                                 const std::int64_t n = Elements(tensors[t].shape);
                                 // The rest of a block of 2048 is left out of all but short
                                 // tensors.
                                 for (std::int64_t i = 0; i < (n > 2048 ? n / 4 * 4 : n); ++i) {
                                   call.Out<float>(0, t)[i] = RightSum(call, t, i);
                                 }
                               }
                               return absl::OkStatus();
                             }),
              HasSubstr("differ"));
}

TEST(Lists, CatchesAnF16Product) {
  EXPECT_THAT(FirstProblemOf(
                  "foreach_add",
                  [](const Call& call) {
                    const auto alpha = static_cast<float>(call.binding->F64("alpha"));
                    return AddLists<F16>(call,
                                         [alpha](const Call& c, std::size_t t, std::int64_t i) {
                                           const float a = Widen(c.In<F16>(0, t)[i]);
                                           const float b = Widen(c.In<F16>(1, t)[i]);
                                           const float product = Widen(Narrow<F16>(alpha * b));
                                           return Narrow<F16>(a + product);
                                         });
                  },
                  DType::kF16),
              HasSubstr("differ"));
}

// What a step of adamw may have wrong.
enum class Slip : std::uint8_t {
  kNone,
  kNoBiasCorrection,
  kOneStepEarly,  // The correction of step t - 1.
  kCoupledDecay,  // The decay goes into the gradient, as in adam.
  kEpsInTheRoot,
  kMeanOfGradients,  // v is the mean of g, not of g^2.
  kHalfPrecision,
};

template <Slip kSlip>
float AdamWElement(const Binding& b, float p, float g, float* m, float* v) {
  const double lr = b.F64("lr"), decay = b.F64("weight_decay"), eps = b.F64("eps");
  const double beta1 = b.F64("beta1"), beta2 = b.F64("beta2");
  const auto t = static_cast<double>(b.I64("step") - (kSlip == Slip::kOneStepEarly ? 1 : 0));
  const double gradient = g + (kSlip == Slip::kCoupledDecay ? decay * p : 0);
  const double square = kSlip == Slip::kMeanOfGradients ? std::fabs(gradient) : gradient * gradient;
  const double mean = beta1 * *m + (1 - beta1) * gradient;
  const double squares = beta2 * *v + (1 - beta2) * square;
  const bool corrected = kSlip != Slip::kNoBiasCorrection;
  const double first = corrected ? mean / (1 - std::pow(beta1, t)) : mean;
  const double second = corrected ? squares / (1 - std::pow(beta2, t)) : squares;
  const double root =
      kSlip == Slip::kEpsInTheRoot ? std::sqrt(second + eps) : std::sqrt(second) + eps;
  const auto rounded = [](double x) {
    const auto wide = static_cast<float>(x);
    return kSlip == Slip::kHalfPrecision ? Widen(Narrow<F16>(wide)) : wide;
  };
  *m = rounded(mean);
  *v = rounded(squares);
  return rounded(p * (kSlip == Slip::kCoupledDecay ? 1 : 1 - lr * decay) - lr * first / root);
}

template <Slip kSlip>
absl::Status AdamW(const Call& call) {
  const std::vector<TensorSpec>& tensors = call.outputs[0].value->tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::int64_t i = 0; i < Elements(tensors[t].shape); ++i) {
      float& p = call.Out<float>(0, t)[i];
      p = AdamWElement<kSlip>(*call.binding, p, call.In<float>(1, t)[i], &call.Out<float>(1, t)[i],
                              &call.Out<float>(2, t)[i]);
    }
  }
  return absl::OkStatus();
}

TEST(Lists, NothingIsWrongWithARightAdamW) {
  EXPECT_EQ(ProblemsOf("adamw", AdamW<Slip::kNone>), "");
}

TEST(Lists, CatchesWhatIsWrongWithAdamW) {
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kNoBiasCorrection>), HasSubstr("p["));
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kOneStepEarly>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kCoupledDecay>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kEpsInTheRoot>), HasSubstr("p["));
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kMeanOfGradients>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("adamw", AdamW<Slip::kHalfPrecision>), HasSubstr("differ"));
}

// --- Casts ---

absl::Status RightCast(const Call& call) {
  static const absl::StatusOr<Registry> registry = Registry::Create(BuiltInKernels());
  return registry->Find("cast")->def.cpu.back().launch(call);
}

// To f8e4m3 as kWrong has it, from f32; to other types right.
template <std::uint8_t (*kWrong)(float)>
absl::Status CastToF8(const Call& call) {
  if (call.OutType(0) != DType::kF8E4M3) return RightCast(call);
  for (std::int64_t i = 0; i < Count(call); ++i) {
    call.Out<std::uint8_t>(0)[i] = kWrong(call.In<float>(0)[i]);
  }
  return absl::OkStatus();
}

std::uint8_t RightF8(float x) {
  return F8E4M3FromDouble(x);
}

// Cut off: the numbers between two go to the smaller one.
std::uint8_t CutOffF8(float x) {
  const std::uint8_t nearest = F8E4M3FromDouble(x);
  const bool above = std::fabs(F8E4M3ToFloat(nearest)) > std::fabs(x);
  return above ? static_cast<std::uint8_t>(nearest - 1) : nearest;
}

std::uint8_t OverflowingF8(float x) {
  return std::fabs(x) > 448 ? std::uint8_t{0x7F} : F8E4M3FromDouble(x);
}

// Twice, by way of bf16: what bf16 rounds to the middle between two numbers is rounded once more.
std::uint8_t TwiceRoundedF8(float x) {
  return F8E4M3FromDouble(Widen(Narrow<BF16>(x)));
}

TEST(Casts, CatchesWhatIsWrongWithF8) {
  EXPECT_EQ(ProblemsOf("cast", CastToF8<RightF8>), "");
  EXPECT_THAT(FirstProblemOf("cast", CastToF8<CutOffF8>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("cast", CastToF8<OverflowingF8>), HasSubstr("differ"));
  EXPECT_THAT(FirstProblemOf("cast", CastToF8<TwiceRoundedF8>), HasSubstr("differ"));
}

// From i64 to T by way of double, which rounds once more; to other types right.
template <typename T>
absl::Status CastByDouble(const Call& call) {
  constexpr bool kToI64 = std::is_same_v<T, std::int64_t>;
  if (call.OutType(0) != (kToI64 ? DType::kI64 : DType::kF32)) return RightCast(call);
  for (std::int64_t i = 0; i < Count(call); ++i) {
    const auto x = static_cast<double>(call.In<std::int64_t>(0)[i]);
    if constexpr (kToI64) {
      call.Out<T>(0)[i] = IntegerFromDouble<T>(x);
    } else {
      call.Out<T>(0)[i] = static_cast<T>(x);
    }
  }
  return absl::OkStatus();
}

TEST(Casts, CatchesLongIntegersByWayOfDouble) {
  EXPECT_EQ(ProblemsOf("cast", RightCast, {DType::kI64, DType::kU64}), "");
  EXPECT_THAT(FirstProblemOf("cast", CastByDouble<std::int64_t>, DType::kI64),
              HasSubstr("the bits of element"));
  EXPECT_THAT(FirstProblemOf("cast", CastByDouble<float>, DType::kI64), HasSubstr("differ"));
}

// To f32, and what comes to zero has no sign.
absl::Status CastWithoutSign(const Call& call) {
  const absl::Status status = RightCast(call);
  for (std::int64_t i = 0; call.OutType(0) == DType::kF32 && i < Count(call); ++i) {
    call.Out<float>(0)[i] += 0.0F;
  }
  return status;
}

TEST(Casts, CatchesALostSignOfZero) {
  EXPECT_THAT(FirstProblemOf("cast", CastWithoutSign, DType::kF16),
              HasSubstr("the signs of element"));
}

}  // namespace
}  // namespace gridclock
