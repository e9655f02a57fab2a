// The exponential function on vectors.
#ifndef GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_
#define GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_

#include <cstdint>
#include <type_traits>

#include "kernels/catalog/simd.h"

namespace gridclock::simd {

// What the exponential needs to know of a type: log(2) in two parts, of which n times the first is
// exact; where the result is surely 0 or infinite; and how many terms of the series are enough on
// |r| <= log(2)/2. The first term left out is 5e-9 (f32) and 4e-18 (f64) of the result.
template <typename F>
struct ExpFacts;
template <>
struct ExpFacts<float> {
  static constexpr float kLn2High = 0.693145751953125f, kLn2Low = 1.428606765330187e-06f;
  static constexpr float kLow = -105.0f, kHigh = 89.0f;
  static constexpr int kTerms = 7, kBias = 127, kMantissaBits = 23;
};
template <>
struct ExpFacts<double> {
  static constexpr double kLn2High = 6.93147180369123816490e-01;
  static constexpr double kLn2Low = 1.90821492927058770002e-10;
  static constexpr double kLow = -746.0, kHigh = 710.0;
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

// e^x within 2 ulp where the result is normal. NaN stays NaN, exp(inf) = inf, exp(-inf) = 0.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  using F = hn::TFromD<D>;
  using Facts = ExpFacts<F>;
  const hn::RebindToSigned<D> di;
  const auto low = hn::Set(d, Facts::kLow), high = hn::Set(d, Facts::kHigh);
  // By comparison, not Min and Max: those do not say what becomes of NaN.
  x = hn::IfThenElse(hn::Lt(x, low), low, x);
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  const auto n = hn::Round(hn::Mul(x, hn::Set(d, static_cast<F>(1.4426950408889634))));
  auto r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, Facts::kLn2Low), r);
  // 2^n in two steps, each a normal number, so that subnormal results and infinity come out right.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto power = [&](auto exponent) {
    const auto biased = hn::Add(exponent, hn::Set(di, Facts::kBias));
    return hn::BitCast(d, hn::ShiftLeft<Facts::kMantissaBits>(biased));
  };
  return hn::Mul(hn::Mul(ExpSeries<0>(d, r), power(half)), power(hn::Sub(whole, half)));
}

}  // namespace gridclock::simd

#endif  // GRIDCLOCK_KERNELS_CATALOG_SIMD_EXP_H_
