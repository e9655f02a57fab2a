// Powers: y = x^exponent, element by element.
//
//   naive   the C library's pow, one thread
//   simd    in vectors, on every core: whole exponents up to 8 by products, others as
//           e^(exponent ln x), where f64 has digits enough to lose some and still round well to
//           f32; for f64 itself there is nothing wider, and the library does it
//
// On a GPU; times are of 2^26 f32 on an H200, whose copy of it takes 126 us, of exponent 2 and of
// 0.3:
//   naive   340 us, 593 us: one thread for each element, the library's pow
//   vec4    125 us, 181 us: 16 bytes at a time; whole exponents up to 8 by products: four of them,
//           where pow takes a logarithm and an exponential. Others by both in pairs of f32, some
//           50 instructions: PyTorch's pow, which rounds 0.3 to f32 as well, takes 210 us, and
//           naive takes pow of f64 for it

#include <cstdint>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

constexpr int kMostProducts = 8;

// Whether products of x, or of 1/x, make the power: their roundings are few then.
bool IsWhole(double exponent) {
  return exponent >= -kMostProducts && exponent <= kMostProducts &&
         exponent == static_cast<int>(exponent);
}

// An exponent that f32 cannot hold would be another one: x^(e + d) is wrong by the part d ln(x).
bool FitsF32(double exponent) {
  return static_cast<double>(static_cast<float>(exponent)) == exponent;
}

}  // namespace
}  // namespace gridclock

#ifndef __CUDACC__  // The CPU.
#include <cmath>
#include <cstdlib>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double exponent = binding.F64("exponent");
  result[0] = exponent == 0 ? 1 : std::pow(in(0, unit), exponent);
}

// x^0 = 1 of a signaling NaN too, of which the C library makes NaN.
template <typename W>
W Power(W x, W exponent) {
  return exponent == 0 ? W{1} : std::pow(x, exponent);
}

// Elements [begin, end) by the C library.
template <typename T>
void ByLibrary(const Call& call, double exponent, std::int64_t begin, std::int64_t end) {
  using W = Wide<T>;
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  if (FitsF32(exponent)) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = Narrow<T>(Power(Widen(x[i]), static_cast<W>(exponent)));
    }
  } else {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = Narrow<T>(static_cast<W>(Power(double{Widen(x[i])}, exponent)));
    }
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    ByLibrary<decltype(element)>(call, call.binding->F64("exponent"), 0, Elements(call.InShape(0)));
    return absl::OkStatus();
  });
}

struct Products {
  int exponent;
  template <class D, class V>
  V operator()(D d, V x) const {
    namespace hn = simd::hn;
    V power = hn::Set(d, 1);
    if (exponent < 0) x = hn::Div(power, x);
    for (int left = std::abs(exponent); left != 0; left >>= 1, x = hn::Mul(x, x)) {
      if ((left & 1) != 0) power = hn::Mul(power, x);
    }
    return power;
  }
};

// ln(m) = 2 (s + s^3/3 + s^5/5 + ...) for s = (m - 1) / (m + 1): this is what stands beside s, for
// s2 = s^2, by Horner's rule, unrolled. For m within sqrt(1/2) and sqrt(2), s^2 is 0.03 at most.
template <int kTerm = 0, class D, class V>
HWY_INLINE V LogSeries(D d, V s2) {
  namespace hn = simd::hn;
  constexpr int kTerms = 6;  // The first term left out is 2^-39 of the result.
  const V c = hn::Set(d, 2.0 / (2 * kTerm + 1));
  if constexpr (kTerm == kTerms) {
    return c;
  } else {
    return hn::MulAdd(LogSeries<kTerm + 1>(d, s2), s2, c);
  }
}

// ln(x) for what an f32 may be without its sign: no subnormal number, as f64 has none of those.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  namespace hn = simd::hn;
  const hn::RebindToUnsigned<D> du;
  constexpr std::uint64_t kRootOfHalf = 0x3FE6A09E667F3BCD, kBias = 1023, kTwoTo52 = 0x433;
  // x = 2^k m, and k + kBias become a number by being the last digits of 2^52.
  const auto bits = hn::BitCast(du, x), above = hn::Sub(bits, hn::Set(du, kRootOfHalf));
  const V m =
      hn::BitCast(d, hn::Sub(bits, hn::And(above, hn::Set(du, std::uint64_t{0xFFF} << 52))));
  const auto digits = hn::ShiftRight<52>(hn::Add(above, hn::Set(du, kBias << 52)));
  const V k = hn::Sub(hn::BitCast(d, hn::Or(digits, hn::Set(du, kTwoTo52 << 52))),
                      hn::Set(d, double{std::uint64_t{1} << 52} + kBias));
  const V one = hn::Set(d, 1), s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V ln = hn::MulAdd(k, hn::Set(d, M_LN2), hn::Mul(s, LogSeries(d, hn::Mul(s, s))));
  const V infinity = hn::Set(d, INFINITY);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity),
                        hn::IfThenElse(hn::Lt(x, infinity), ln, x));
}

// Powers of f32 and of what is computed in it: f64 until all is rounded once.
class PowerByLog {
 public:
  explicit PowerByLog(double exponent)
      : exponent_(exponent),
        whole_(exponent == std::trunc(exponent)),
        odd_(std::fabs(std::fmod(exponent, 2)) == 1) {}

  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = simd::hn;
    const hn::Half<D> half;
    const V size = hn::Abs(x);
    const V power = hn::Combine(d, OfSize(half, hn::UpperHalf(half, size)),
                                OfSize(half, hn::LowerHalf(half, size)));
    if (odd_) return hn::Or(power, hn::And(x, hn::SignBit(d)));
    if (whole_) return power;
    // Of 0 and infinity the sign does not count.
    const auto has_none = hn::And(hn::Lt(x, hn::Zero(d)), hn::IsFinite(x));
    return hn::IfThenElse(has_none, hn::NaN(d), power);
  }

 private:
  template <class D, class V>
  HWY_INLINE V OfSize(D d, V size) const {
    namespace hn = simd::hn;
    const hn::Rebind<double, D> wide;
    constexpr double kBeyondF32 = 150;  // Its powers of e end at -104 and 89.
    const auto ln = hn::Mul(hn::Set(wide, exponent_), Log(wide, hn::PromoteTo(wide, size)));
    const auto bounded = simd::AtMost(wide, simd::AtLeast(wide, ln, -kBeyondF32), kBeyondF32);
    constexpr int kTerms = 8;  // The first term left out is 2^-32 of the result.
    return hn::DemoteTo(d, simd::ExpInRange<decltype(wide), kTerms>(wide, bounded));
  }

  double exponent_;
  bool whole_, odd_;
};

absl::Status Simd(const Call& call) {
  const double exponent = call.binding->F64("exponent");
  const std::int64_t n = Elements(call.InShape(0));
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const auto map = [&](auto power) {
      simd::Map<T>(*call.threads, power, call.Out<T>(0), n, call.In<T>(0));
    };
    if (IsWhole(exponent)) {
      map(Products{static_cast<int>(exponent)});
    } else if constexpr (std::is_same_v<T, double>) {
      constexpr std::int64_t kGrain = 512;  // A pow takes 10 to 50 ns.
      call.threads->ParallelFor(n, kGrain, [&](std::int64_t begin, std::int64_t end) {
        ByLibrary<T>(call, exponent, begin, end);
      });
    } else {
      map(PowerByLog(exponent));
    }
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(pow) {
  return {
      .words =
          "x: T[*] -> y: T[*] over x; exponent: f64 = 2 in (-inf, inf) "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "Each element to a power",
      .formula = "y = x^exponent",
      .notes =
          "As pow of C: x^0 = 1 for every x, NaN too; a negative x to a power that is no whole "
          "number is NaN. Computed in f32 (f64 for f64), to some units in its last place, the "
          "exponent as it is where f32 cannot hold it: by naive in f64, by vec4 in pairs of f32, "
          "by simd in f64 for all that are no whole numbers up to 8.",
      .reference = EachElement(Expected),
      .cpu =
          {{"naive", "pow of the C library, one thread", Naive},
           {"simd",
            "Whole exponents up to 8 by products, others by e^(exponent ln x) in f64, in vectors, "
            "on every core; f64 by pow",
            Simd}},
  };
}

#else  // The GPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

// V is float, or double for all exponents that float cannot hold.
template <typename V>
struct Power {
  V exponent;
  template <typename W>
  __device__ W operator()(W x) const {
    return static_cast<W>(pow(static_cast<V>(x), exponent));
  }
};

struct Square {
  template <typename W>
  __device__ W operator()(W x) const {
    return x * x;
  }
};

// Exponents that are no whole numbers: 2^(e log2(x)), logarithm and product in pairs of f32, a
// number and what it was rounded by. Units in the last place it may be wrong by: 2, and 3 where
// |e| > 100, of 4 million x each, and what the hardware's 2^x adds.
struct PowerOfFraction {
  explicit PowerOfFraction(double exponent)
      : high(static_cast<float>(exponent)), low(static_cast<float>(exponent - high)) {}
  float high, low;

  __device__ float operator()(float x) const {
    const Log2 log = Log2Of(x);
    const float product = __fmul_rn(high, log.high);
    float rest = __fmaf_rn(high, log.high, -product);
    rest = __fmaf_rn(high, log.low, rest);
    rest = __fmaf_rn(low, log.high, rest);
    // 2^128 is infinite, though with what lies beside it it may be a number. Of what is beyond it
    // the rest is large; of powers that are 0 it may be anything, and must not make them negative.
    float power = fminf(__fadd_rn(product, rest), 127.99999F);
    rest = fmaxf(__fadd_rn(__fsub_rn(product, power), rest), -1.0F);
    if (!(x >= 0)) power = std::numeric_limits<float>::quiet_NaN();
    if (x == 0) power = -copysignf(cuda::Infinity<float>(), high);
    if (isinf(x)) power = copysignf(cuda::Infinity<float>(), high);
    constexpr float kLn2 = 0.693147181F;
    return exp2f(power) * __fmaf_rn(rest, kLn2, 1.0F);
  }

 private:
  struct Log2 {
    float high, low;
  };

  // Of x > 0. x = 2^k m for m within 2/3 and 4/3, and for s = (m - 1) / (m + 1)
  // log2(m) = 2 / ln(2) (s + s^3/3 + s^5/5 + ...).
  static __device__ Log2 Log2Of(float x) {
    constexpr float kLeastNormal = 1.17549435e-38F, kTwoTo24 = 16777216,
                    kTwoToMinus23 = 1.1920929e-7F;
    constexpr int kTwoThirds = 0x3F2AAAAB, kExponentBits = static_cast<int>(0xFF800000U);
    constexpr double kScale = 2.885390081777926814720;  // 2 / ln(2)
    constexpr float kHigh = static_cast<float>(kScale), kLow = static_cast<float>(kScale - kHigh);
    const bool subnormal = x < kLeastNormal;
    const int bits = __float_as_int(subnormal ? x * kTwoTo24 : x);
    const int whole = (bits - kTwoThirds) & kExponentBits;
    const float k = __fmaf_rn(static_cast<float>(whole), kTwoToMinus23, subnormal ? -24.0F : 0.0F);
    const float m = __int_as_float(bits - whole);
    const float f = m - 1, reciprocal = __fdividef(1, m + 1), s = __fmul_rn(f, reciprocal);
    const float s2 = __fmul_rn(s, s);
    // What s lacks, and what that changes in the series.
    const float lacks = reciprocal * __fmaf_rn(-s, f, __fmaf_rn(-2, s, f));
    const float s_low = __fmaf_rn(lacks, s2, lacks);
    float series = static_cast<float>(kScale / 11);
    series = __fmaf_rn(series, s2, static_cast<float>(kScale / 9));
    series = __fmaf_rn(series, s2, static_cast<float>(kScale / 7));
    series = __fmaf_rn(series, s2, static_cast<float>(kScale / 5));
    series = __fmaf_rn(series, s2, static_cast<float>(kScale / 3));
    const float first = __fmul_rn(kHigh, s);
    float low = __fmaf_rn(kHigh, s, -first);
    low = __fmaf_rn(kHigh, s_low, low);
    low = __fmaf_rn(kLow, s, low);
    low = __fmaf_rn(series * s2, s, low);
    const float high = __fadd_rn(k, first);
    return {high, __fadd_rn(__fadd_rn(__fsub_rn(k, high), first), low)};
  }
};

// Without a loop: its jumps take as long as memory where a tensor fits the cache.
struct Products {
  int exponent;
  template <typename W>
  __device__ W operator()(W x) const {
    if (exponent < 0) x = 1 / x;
    const int left = exponent < 0 ? -exponent : exponent;
    const W x2 = x * x, x4 = x2 * x2;
    if (left == kMostProducts) return x4 * x4;
    W power = (left & 1) != 0 ? x : W{1};
    if ((left & 2) != 0) power *= x2;
    if ((left & 4) != 0) power *= x4;
    return power;
  }
};
static_assert(kMostProducts == 8);

// `map` with the operation for elements of T.
template <typename T, typename Map>
absl::Status WithPower(double exponent, Map map) {
  if constexpr (!std::is_same_v<T, double>) {
    if (FitsF32(exponent)) return map(Power<float>{static_cast<float>(exponent)});
  }
  return map(Power<double>{exponent});
}

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return WithPower<T>(call.binding->F64("exponent"), [&](auto power) {
      return cuda::Map(call, power, call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
    });
  });
}

absl::Status Vec4(const Call& call) {
  const double exponent = call.binding->F64("exponent");
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const auto map = [&](auto power) {
      return cuda::MapPacks(call, power, call.Out<T>(0), Elements(call.InShape(0)), call.In<T>(0));
    };
    if (exponent == 2) return map(Square());
    if (IsWhole(exponent)) return map(Products{static_cast<int>(exponent)});
    if constexpr (!std::is_same_v<T, double>) {
      if (exponent != std::trunc(exponent)) return map(PowerOfFraction(exponent));
    }
    return WithPower<T>(exponent, map);
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(pow) {
  return {{"naive", "One thread for each element, with the library's pow", Naive},
          {"vec4", "16 bytes at a time; whole exponents up to 8 by products", Vec4}};
}

#endif  // __CUDACC__
