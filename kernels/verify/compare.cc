#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/verify/verify.h"

namespace gridclock {
namespace {

struct Precision {
  double unit = 0;      // Unit roundoff: half a step at 1.
  double absolute = 0;  // What cannot be told from zero.
  double most = 0;      // The largest finite number; 0 of types that must be exact.
  bool saturates = false;
};

Precision PrecisionOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {0x1p-53, 0x1p-1022, std::numeric_limits<double>::max(), false};
    case DType::kF32:
      return {0x1p-24, 0x1p-126, std::numeric_limits<float>::max(), false};
    case DType::kBF16:
      return {0x1p-8, 0x1p-126, 0x1.FEp127, false};
    case DType::kF16:
      return {0x1p-11, 0x1p-23, 65504, false};
    case DType::kF8E4M3:
      return {0x1p-4, 0x1p-8, 448, true};
    case DType::kF8E5M2:
      return {0x1p-3, 0x1p-15, 57344, true};
    default:
      return {};
  }
}

// What a variant that is worth its place adds in `acc` before it joins the sum to others: a chunk
// of a simd sum, over its lanes. Results of more terms are not let off more lightly.
constexpr double kMostTermsInOrder = 4096;

// The least number above zero.
double LeastStep(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-1074;
    case DType::kF32:
      return 0x1p-149;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kF16:
      return 0x1p-24;
    case DType::kF8E4M3:
      return 0x1p-9;
    default:
      return 0x1p-16;  // f8e5m2.
  }
}

// A unit in the last place of `want` in `dtype`. Below the normal numbers steps grow no smaller.
double StepAt(double want, DType dtype) {
  int exponent = 0;
  std::frexp(want, &exponent);
  const double step = want == 0 ? 0 : std::ldexp(PrecisionOf(dtype).unit, exponent);
  return std::max(step, LeastStep(dtype));
}

constexpr double kNever = std::numeric_limits<double>::infinity();

Comparison Exactly(bool equal, double tolerance) {
  return {.error = equal ? 0 : kNever, .tolerance = tolerance, .undecided = false};
}

}  // namespace

Tolerance ToleranceFor(DType out, std::int64_t accumulation) {
  const Precision precision = PrecisionOf(out);
  if (precision.most == 0) return {};
  const double unit = PrecisionOf(out == DType::kF64 ? DType::kF64 : DType::kF32).unit;
  const double terms = std::max(1.0, static_cast<double>(accumulation));
  return {.relative = 2 * precision.unit + 4 * unit * (std::sqrt(std::min(terms, 1 / unit)) - 1),
          .accumulation = 4 * unit * (4 + std::sqrt(std::min(terms, kMostTermsInOrder))),
          .absolute = precision.absolute};
}

Tolerance ToleranceOf(Roundings roundings, DType out, std::int64_t accumulation,
                      bool rounds_on_the_way) {
  if (roundings == Roundings::kNone) return {.exact = true};
  const Precision precision = PrecisionOf(out), f32 = PrecisionOf(DType::kF32);
  const bool narrow = precision.unit > f32.unit;
  if (roundings == Roundings::kSeveral || precision.most == 0) {
    Tolerance tolerance = ToleranceFor(out, accumulation);
    if (narrow && !rounds_on_the_way) {
      const double cut_off = static_cast<double>(accumulation) / 32 * f32.unit;
      tolerance.relative += std::min(cut_off, precision.unit) - 2 * (precision.unit - f32.unit);
      tolerance.steps = 0.5;
    }
    return tolerance;
  }
  if (narrow) return {.relative = f32.unit, .absolute = f32.absolute, .steps = 0.5};
  // What the reference lost in f64, of f32; of f64 it is the rounded result itself.
  const double lost = out == DType::kF64 ? 0 : 0x1p-52;
  return {.relative = lost, .absolute = precision.absolute, .steps = 0.5};
}

double UlpsBetween(double got, double want, DType dtype) {
  if (PrecisionOf(dtype).most == 0 || got == want) return 0;
  return std::abs(got - want) / StepAt(want, dtype);
}

Comparison Compare(double got, double want, double scale, DType dtype, const Tolerance& tolerance) {
  if (std::isnan(want) || std::isnan(got)) return Exactly(std::isnan(want) && std::isnan(got), 0);
  if (got == want) {
    Comparison same = Exactly(true, 0);
    // Beyond it several integers of 64 bits are one double.
    same.undecided = (dtype == DType::kI64 || dtype == DType::kU64) && std::abs(want) >= 0x1p53;
    return same;
  }
  if (tolerance.exact) return Exactly(false, 0);
  const Precision precision = PrecisionOf(dtype);
  // Under terms without bound every result would do: then the result itself is the scale.
  if (!std::isfinite(scale)) scale = want;
  const auto half_steps = [&](double at) {
    return tolerance.steps > 0 ? tolerance.steps * StepAt(at, dtype) : 0;
  };
  const double before_rounding = tolerance.relative * std::abs(want) +
                                 tolerance.accumulation * std::abs(scale) + tolerance.absolute;
  const double allowed = before_rounding + half_steps(want);
  const bool overflows = precision.most != 0 && std::abs(want) + before_rounding >=
                                                    precision.most + half_steps(precision.most);
  if (overflows && std::signbit(got) == std::signbit(want) &&
      (std::isinf(got) || (precision.saturates && std::abs(got) == precision.most))) {
    return Exactly(true, allowed);
  }
  if (std::isinf(want) || std::isinf(got) || !(allowed > 0)) return Exactly(false, allowed);
  return {.error = std::abs(got - want) / allowed,
          .tolerance = allowed,
          .undecided = allowed >= std::abs(want)};
}

}  // namespace gridclock
