// GELU, x times the chance that a standard normal number is below x:
//   none   y = x/2 (1 + erf(x / sqrt(2)))
//   tanh   y = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), close to it and once cheaper
//
//   naive   the formulas with the C library's erf and tanh, one thread
//   simd    one exponential, or one quotient of polynomials, in vectors on every core
//
// On a GPU:
//   unfused   a launch for each operation of the formula, as a framework without fusion makes them
//   naive     one thread for each element, the formulas with the library's erf and tanh
//   vec4      16 bytes at a time; tanh as one exponential of the hardware

#include "kernels/api/kernel.h"

#ifdef __CUDACC__
#include "kernels/catalog/cuda_map.cuh"

namespace gridclock {
namespace {

constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;
constexpr double kSqrt1Of2 = 0.70710678118654752440;

bool IsTanh(const Call& call) {
  return call.binding->Word("approximate") == "tanh";
}

// So far below 0 every form gives -0; and -inf itself would give -inf * 0. NaN stays NaN.
struct AtSurelyZero {
  template <typename W>
  __device__ W operator()(W x) const {
    return x < W{-100} ? W{-100} : x;
  }
};

struct NaiveTanh {
  template <typename W>
  __device__ W operator()(W x) const {
    x = AtSurelyZero()(x);
    const W u = static_cast<W>(kSqrt2OverPi) * (x + static_cast<W>(kCubic) * x * x * x);
    return W{0.5} * x * (1 + tanh(u));
  }
};

struct Exact {
  template <typename W>
  __device__ W operator()(W x) const {
    x = AtSurelyZero()(x);
    return W{0.5} * x * (1 + erf(x * static_cast<W>(kSqrt1Of2)));
  }
};

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u)), exactly. In f32 the exponential and the quotient are
// those of the hardware: their errors are a few roundings of x, which is what a tanh costs too.
struct FastTanh {
  __device__ double operator()(double x) const { return NaiveTanh()(x); }
  __device__ float operator()(float x) const {
    x = AtSurelyZero()(x);
    constexpr float kFirst = static_cast<float>(-2 * kSqrt2OverPi);
    constexpr float kThird = static_cast<float>(-2 * kSqrt2OverPi * kCubic);
    return __fdividef(x, 1 + __expf(x * (kFirst + kThird * (x * x))));
  }
};

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t n = Elements(call.InShape(0));
    return IsTanh(call) ? cuda::Map(call, NaiveTanh(), call.Out<T>(0), n, call.In<T>(0))
                        : cuda::Map(call, Exact(), call.Out<T>(0), n, call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t n = Elements(call.InShape(0));
    return IsTanh(call) ? cuda::MapPacks(call, FastTanh(), call.Out<T>(0), n, call.In<T>(0))
                        : cuda::MapPacks(call, Exact(), call.Out<T>(0), n, call.In<T>(0));
  });
}

// --- unfused ---

struct Multiply {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return a * b;
  }
};
struct Plus {
  template <typename W>
  __device__ W operator()(W a, W b) const {
    return a + b;
  }
};
template <typename W>
struct Times {
  W factor;
  __device__ W operator()(W x) const { return x * factor; }
};
struct PlusOne {
  template <typename W>
  __device__ W operator()(W x) const {
    return x + 1;
  }
};
struct Tanh {
  template <typename W>
  __device__ W operator()(W x) const {
    return tanh(x);
  }
};
struct Erf {
  template <typename W>
  __device__ W operator()(W x) const {
    return erf(x);
  }
};

// 1 + tanh(u), or 1 + erf(x / sqrt(2)), into `inner`.
template <typename W>
absl::Status InnerUnfused(const Call& call, const W* x, W* inner, std::int64_t n) {
  const auto scale = [&](double factor, const W* from) {
    return cuda::MapPacks(call, Times<W>{static_cast<W>(factor)}, inner, n, from);
  };
  if (IsTanh(call)) {
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Multiply(), inner, n, x, x));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Multiply(), inner, n, inner, x));
    GC_RETURN_IF_ERROR(scale(kCubic, inner));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Plus(), inner, n, inner, x));
    GC_RETURN_IF_ERROR(scale(kSqrt2OverPi, inner));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Tanh(), inner, n, inner));
  } else {
    GC_RETURN_IF_ERROR(scale(kSqrt1Of2, x));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Erf(), inner, n, inner));
  }
  return cuda::MapPacks(call, PlusOne(), inner, n, inner);
}

// Between the launches all numbers are wide, so that rounding is that of the other variants.
absl::Status Unfused(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    using W = cuda::Wide<T>;
    const std::int64_t n = Elements(call.InShape(0));
    auto* x = static_cast<W*>(call.scratch[0].data[0]);
    auto* inner = static_cast<W*>(call.scratch[1].data[0]);
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, AtSurelyZero(), x, n, call.In<T>(0)));
    GC_RETURN_IF_ERROR(InnerUnfused(call, x, inner, n));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Times<W>{W{0.5}}, x, n, x));
    return cuda::MapPacks(call, Multiply(), call.Out<T>(0), n, x, inner);
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(gelu) {
  return {{"unfused", "A launch for each operation: 10 for tanh, 6 for none", Unfused,
           "scratch bounded: u8[numel(x) * max(sizeof(T), 4)] "
           "scratch inner: u8[numel(x) * max(sizeof(T), 4)]"},
          {"naive", "One thread for each element, with the library's erf and tanh", Naive},
          {"vec4", "16 bytes at a time; tanh as one exponential of the hardware", Vec4}};
}

#else  // The CPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"
#include "kernels/catalog/simd_exp.h"

namespace gridclock {
namespace {

constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kCubic = 0.044715;

bool IsTanh(const Binding& binding) {
  return binding.Word("approximate") == "tanh";
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double x = in(0, unit);
  const double inner = IsTanh(binding) ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                                       : std::erf(x / std::sqrt(2.0));
  result[0] = std::isinf(x) && x < 0 ? -0.0 : 0.5 * x * (1 + inner);  // There -inf * 0 is NaN.
}

// 1 + tanh and 1 + erf lose what they cancel, for negative x: the error rests on x, not on y.
void Magnitude(const Binding&, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  result[0] = std::fabs(in(0, unit));
}

// So far below 0 every form gives -0; and -inf itself would give -inf * 0.
template <typename W>
constexpr W kSurelyZero = -100;

template <typename T>
T NaiveGelu(T element, bool tanh) {
  using W = Wide<T>;
  const W x = Widen(element) < kSurelyZero<W> ? kSurelyZero<W> : Widen(element);
  const W inner =
      tanh ? std::tanh(W{kSqrt2OverPi} * (x + W{kCubic} * x * x * x)) : std::erf(x * W{M_SQRT1_2});
  return Narrow<T>(W{0.5} * x * (1 + inner));
}

absl::Status Naive(const Call& call) {
  const bool tanh = IsTanh(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* x = call.In<T>(0);
    T* y = call.Out<T>(0);
    const std::int64_t n = Elements(call.InShape(0));
    for (std::int64_t i = 0; i < n; ++i) y[i] = NaiveGelu<T>(x[i], tanh);
    return absl::OkStatus();
  });
}

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

// In f64 the exact form is the C library's erfc on every core: no short polynomial has 53 bits.
absl::Status ExactF64(const Call& call) {
  const double* x = call.In<double>(0);
  double* y = call.Out<double>(0);
  constexpr std::int64_t kGrain = 512;
  call.threads->ParallelFor(
      Elements(call.InShape(0)), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const double v = x[i] < kSurelyZero<double> ? kSurelyZero<double> : x[i];
          y[i] = 0.5 * v * std::erfc(-v * M_SQRT1_2);
        }
      });
  return absl::OkStatus();
}

absl::Status Simd(const Call& call) {
  const bool tanh = IsTanh(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t n = Elements(call.InShape(0));
    if (tanh) {
      simd::Map<T>(*call.threads, TanhForm(), call.Out<T>(0), n, call.In<T>(0));
    } else if constexpr (std::is_same_v<T, double>) {
      return ExactF64(call);
    } else {
      simd::Map<T>(*call.threads, ExactForm(), call.Out<T>(0), n, call.In<T>(0));
    }
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(gelu) {
  return {
      .words =
          "x: T[*] -> y: T[*] over x; approximate: {tanh, none} = tanh "
          "where T in {f64, f32, f16, bf16}",
      .summary = "Gaussian error linear unit, by tanh or exact",
      .formula = "y = x/2 (1 + erf(x/sqrt(2))), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))",
      .notes =
          "Computed in f32 (f64 for f64); the error is some roundings of x. gelu(inf) = inf, "
          "gelu(-inf) = -0.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = One,
                    .magnitude = Magnitude},
      .cpu = {{"naive", "erf or tanh of the C library, one thread", Naive},
              {"simd", "One exponential or quotient of polynomials, in vectors, on every core",
               Simd}},
  };
}

#endif  // __CUDACC__
