// What a step of adam and adamw is computed with, the same for all elements.
#ifndef GRIDCLOCK_KERNELS_CATALOG_ADAM_NUMBERS_H_
#define GRIDCLOCK_KERNELS_CATALOG_ADAM_NUMBERS_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/catalog/attributes.h"
#include "proto/types/binding.h"

namespace gridclock {

// Computed in f64 and rounded once: 1 - beta2 of an f32 beta2 has lost four of its digits.
struct AdamNumbers {
  float weight_decay, kept;  // Of a parameter: the part that decays at once, 1 - lr weight_decay.
  float beta1, rest1;        // rest = 1 - beta.
  float beta2, rest2;
  float step;        // lr / (1 - beta1^t)
  float root_scale;  // 1 / sqrt(1 - beta2^t)
  float eps;
};

// By a smaller one, but 0, the rate of a parameter without a gradient would be infinite, and what
// it is multiplied by is 0.
inline double AdamEpsOf(const Binding& binding) {
  constexpr double kLeast = 1e-30;
  const double eps = binding.F64("eps");
  return eps > 0 ? std::max(eps, kLeast) : 0;
}

inline AdamNumbers AdamNumbersOf(const Binding& binding) {
  const double lr = binding.F64("lr"), weight_decay = binding.F64("weight_decay");
  const double beta1 = binding.F64("beta1"), beta2 = binding.F64("beta2");
  const auto t = static_cast<double>(binding.I64("step"));
  return {.weight_decay = static_cast<float>(weight_decay),
          .kept = static_cast<float>(1 - lr * weight_decay),
          .beta1 = static_cast<float>(beta1),
          .rest1 = static_cast<float>(1 - beta1),
          .beta2 = static_cast<float>(beta2),
          .rest2 = static_cast<float>(1 - beta2),
          .step = static_cast<float>(lr / (1 - std::pow(beta1, t))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
          .eps = static_cast<float>(AdamEpsOf(binding))};
}

// The least that a step may be divided by where v is this after it, in exact arithmetic; 0 where
// f32 may come to quite another number, as v was summed from what is below its normal numbers, of
// which digits are lost.
inline double AdamLeastBelow(const Binding& binding, double v) {
  constexpr double kLost = 0x1p-147;  // Of v, by four roundings.
  constexpr double kSettled = 0x1p-20;
  const auto t = static_cast<double>(binding.I64("step"));
  const auto below = [&](double square) {
    square = std::max(square, 0.0) / (1 - std::pow(binding.F64("beta2"), t));
    return std::sqrt(square) + AdamEpsOf(binding);
  };
  const double least = below(v - kLost), most = below(v + kLost);
  return most - least <= kSettled * least ? least : 0;
}

// What a step multiplies m by, at most. Infinity where that is not known, or where f32 has no such
// step but 0, which makes NaN of an infinite m.
inline double AdamRateOf(const Binding& binding, double v) {
  const auto t = static_cast<double>(binding.I64("step"));
  const double step = binding.F64("lr") / (1 - std::pow(binding.F64("beta1"), t));
  const double least = AdamLeastBelow(binding, v);
  const bool vanishes = step > 0 && static_cast<float>(step) == 0;
  return least > 0 && !vanishes ? step / least : std::numeric_limits<double>::infinity();
}

// What a step may lose where m, that rate or the step is below the normal numbers: as a size of
// terms.
inline double AdamLossOf(const Binding& binding, double m, double v) {
  const double size = std::fabs(m);
  return (size + AdamRateOf(binding, v) + size / AdamLeastBelow(binding, v)) * 0x1p-126;
}

// That each of these numbers is one: INVALID_ARGUMENT.
inline absl::Status CheckAdam(const Binding& binding) {
  GC_RETURN_IF_ERROR(CheckFitsF32(binding, "lr"));
  GC_RETURN_IF_ERROR(CheckFitsF32(binding, "weight_decay"));
  const AdamNumbers n = AdamNumbersOf(binding);
  if (std::isfinite(n.step) && std::isfinite(n.kept) && std::isfinite(n.root_scale)) {
    return absl::OkStatus();
  }
  return WithField(absl::InvalidArgumentError(absl::StrCat(
                       "attribute 'lr': want lr / (1 - beta1^step) and lr weight_decay of at most "
                       "3.4e38 either side of 0, got lr ",
                       binding.F64("lr"))),
                   "attributes.lr");
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_ADAM_NUMBERS_H_
