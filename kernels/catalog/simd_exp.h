// The exponential function on vectors.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_
#define GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_

#include <cstdint>
#include <type_traits>

#include "kernels/catalog/simd.h"

namespace gridclock::simd {

// What the exponential needs to know of a type: log(2) in two parts, of which n times the first is
// exact; below and above which x the result is surely no normal number; how many terms of the
// series are enough on |r| <= log(2)/2 (the first term left out is 1.2e-7 of the result in f32,
// 4e-18 in f64); and the number that, once added, leaves the nearest integer and the bias of the
// exponent in the low bits, below which its own are 0.
template <typename F>
struct ExpFacts;
template <>
struct ExpFacts<float> {
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-06f;
  static constexpr float kLow = -87.33655f, kHigh = 89.0f, kRounder = 12582912.0f + 127;
  static constexpr int kTerms = 6, kMantissaBits = 23;
};
template <>
struct ExpFacts<double> {
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLow = -708.3964185322642, kHigh = 710.0,
                          kRounder = 6755399441055744.0 + 1023;
  static constexpr int kTerms = 13, kMantissaBits = 52;
};

// 1 / n!
template <typename F>
constexpr F InverseFactorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return static_cast<F>(1 / product);
}

// 1 + r/1! + r^2/2! + ... + r^kTerms/kTerms! by Horner's rule, unrolled.
template <int kTerms, int kTerm = 0, class D, class V>
HWY_INLINE V ExpSeries(D d, V r) {
  const auto c = hn::Set(d, InverseFactorial<hn::TFromD<D>>(kTerm));
  if constexpr (kTerm == kTerms) {
    return c;
  } else {
    return hn::MulAdd(ExpSeries<kTerms, kTerm + 1>(d, r), r, c);
  }
}

// e^x for x from kLow to kHigh, or NaN; within 3 ulp unless fewer terms are asked for, but infinite
// where 2^n is: from log(2) / 2 below the largest exponent on. NaN stays NaN.
template <class D, int kTerms = ExpFacts<hn::TFromD<D>>::kTerms, class V>
HWY_INLINE V ExpInRange(D d, V x) {
  using F = hn::TFromD<D>;
  using Facts = ExpFacts<F>;
  const hn::RebindToUnsigned<D> du;
  // x = n log(2) + r. Rounding by addition saves the conversion to integers and back, and what is
  // left in the low bits is the exponent of 2^n, which needs only to be shifted to its place.
  const auto rounder = hn::Set(d, Facts::kRounder);
  const auto shifted = hn::MulAdd(x, hn::Set(d, static_cast<F>(1.4426950408889634)), rounder);
  const auto n = hn::Sub(shifted, rounder);
  auto r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2Low), r);
  const auto power = hn::ShiftLeft<Facts::kMantissaBits>(hn::BitCast(du, shifted));
  return hn::Mul(ExpSeries<kTerms>(d, r), hn::BitCast(d, power));
}

// The same for any x up to kHigh; 0 below the normal numbers.
template <class D, class V>
HWY_INLINE V ExpUpToHigh(D d, V x) {
  const auto low = hn::Set(d, ExpFacts<hn::TFromD<D>>::kLow);
  return hn::IfThenZeroElse(hn::Lt(x, low), ExpInRange(d, x));
}

}  // namespace gridclock::simd

#endif  // GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_
