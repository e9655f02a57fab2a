// The numbers of GELU's tanh form: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
#ifndef GRIDCLOCK_KERNELS_CATALOG_GELU_NUMBERS_H_
#define GRIDCLOCK_KERNELS_CATALOG_GELU_NUMBERS_H_

namespace gridclock::gelu {

inline constexpr double kSqrt2OverPi = 0.79788456080286535588;
inline constexpr double kCubic = 0.044715;

}  // namespace gridclock::gelu

#endif  // GRIDCLOCK_KERNELS_CATALOG_GELU_NUMBERS_H_
