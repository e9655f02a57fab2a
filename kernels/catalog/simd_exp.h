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
// 4e-18 in f64); and the number that, once added, leaves the nearest integer in the low bits.
template <typename F>
struct ExpFacts;
template <>
struct ExpFacts<float> {
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-06f;
  static constexpr float kLow = -87.336f, kHigh = 89.0f, kRounder = 12582912.0f;
  static constexpr int kTerms = 6, kBias = 127, kMantissaBits = 23;
};
template <>
struct ExpFacts<double> {
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLow = -708.396, kHigh = 710.0, kRounder = 6755399441055744.0;
  static constexpr int kTerms = 13, kBias = 1023, kMantissaBits = 52;
};

// 1 / n!
template <typename F>
constexpr F InverseFactorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return static_cast<F>(1 / product);
}

// 1 + r/1! + r^2/2! + ... by Horner's rule, unrolled.
template <int kTerm, class D, class V>
HWY_INLINE V ExpSeries(D d, V r) {
  using F = hn::TFromD<D>;
  const auto c = hn::Set(d, InverseFactorial<F>(kTerm));
  if constexpr (kTerm == ExpFacts<F>::kTerms) {
    return c;
  } else {
    return hn::MulAdd(ExpSeries<kTerm + 1>(d, r), r, c);
  }
}

// e^x for x up to kHigh, or NaN; within 3 ulp. NaN stays NaN; 0 below the normal numbers.
template <class D, class V>
HWY_INLINE V ExpUpToHigh(D d, V x) {
  using F = hn::TFromD<D>;
  using Facts = ExpFacts<F>;
  const hn::RebindToSigned<D> di;
  // x = n log(2) + r. Rounding by addition saves the conversion to integers and back.
  const auto rounder = hn::Set(d, Facts::kRounder);
  const auto shifted = hn::MulAdd(x, hn::Set(d, static_cast<F>(1.4426950408889634)), rounder);
  const auto n = hn::Sub(shifted, rounder);
  auto r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2Low), r);
  const auto whole = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, rounder));
  const auto power = hn::ShiftLeft<Facts::kMantissaBits>(hn::Add(whole, hn::Set(di, Facts::kBias)));
  const auto result = hn::Mul(ExpSeries<0>(d, r), hn::BitCast(d, power));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, Facts::kLow)), result);
}

// The same for any x; infinity from 2^127.5 on.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  // By comparison, not Min: that does not say what becomes of NaN.
  const auto high = hn::Set(d, ExpFacts<hn::TFromD<D>>::kHigh);
  return ExpUpToHigh(d, hn::IfThenElse(hn::Gt(x, high), high, x));
}

}  // namespace gridclock::simd

#endif  // GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_
