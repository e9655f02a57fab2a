// GELU in vectors, for the kernels that end in one.
#ifndef GRIDCLOCK_KERNELS_CATALOG_GELU_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_GELU_SIMD_H_

#include "kernels/catalog/gelu_numbers.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock::gelu {

// So far below 0 every form gives -0; and -inf itself would give -inf * 0.
template <typename W>
inline constexpr W kSurelyZero = -100;

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), exactly: one exponential instead of a tanh.
struct TanhForm {
  template <class D, class V>
  V operator()(D d, V x) const {
    namespace hn = simd::hn;
    using F = hn::TFromD<D>;
    constexpr double kAddsNothing = -40;  // 1 + exp(-40) is 1, even in f64.
    x = simd::AtLeast(d, x, kSurelyZero<double>);
    const auto slope =
        hn::MulAdd(hn::Mul(x, x), hn::Set(d, static_cast<F>(-2 * kSqrt2OverPi * kCubic)),
                   hn::Set(d, static_cast<F>(-2 * kSqrt2OverPi)));
    const auto exponent = simd::AtMost(d, simd::AtLeast(d, hn::Mul(x, slope), kAddsNothing),
                                       simd::ExpFacts<F>::kHigh);
    return hn::Div(x, hn::Add(hn::Set(d, F{1}), simd::ExpInRange(d, exponent)));
  }
};

// 1/2 + h(x), h = erf(x / sqrt(2)) / 2 = x P(x^2) / Q(x^2) for |x| < 5.5, and 1/2 beyond, where f32
// knows no difference. P and Q were fitted for the least absolute error: 7e-9, and 1.3e-7 with the
// roundings of f32. All coefficients are positive, so no digits cancel.
struct ExactForm {
  template <class D, class V>
  V operator()(D d, V x) const {
    namespace hn = simd::hn;
    x = simd::AtLeast(d, x, kSurelyZero<double>);
    const auto t = hn::Mul(x, x);
    const auto polynomial = [&](auto first, auto... coefficients) {
      auto p = hn::Set(d, first);
      ((p = hn::MulAdd(p, t, hn::Set(d, coefficients))), ...);
      return p;
    };
    const auto above = polynomial(2.27495275e-8f, 6.35211923e-6f, 1.68824725e-4f, 4.67725484e-3f,
                                  3.38525435e-2f, 3.98942235e-1f);
    const auto below = polynomial(1.19750884e-6f, 7.36472432e-5f, 1.88443935e-3f, 2.86458139e-2f,
                                  2.51521661e-1f, 1.0f);
    const auto half = hn::Set(d, 0.5f);
    const auto inside = hn::Mul(x, hn::Div(above, below));
    const auto is_far = hn::Ge(hn::Abs(x), hn::Set(d, 5.5f));
    const auto h = hn::IfThenElse(is_far, hn::CopySignToAbs(half, x), inside);
    return hn::Mul(x, hn::Add(half, h));
  }
};

}  // namespace gridclock::gelu

#endif  // GRIDCLOCK_KERNELS_CATALOG_GELU_SIMD_H_
