// GELU, x times the chance that a standard normal number is below x:
//   none   y = x/2 (1 + erf(x / sqrt(2)))
//   tanh   y = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), close to it and once cheaper
//
//   naive   the formulas with the C library's erf and tanh, one thread
//   simd    one exponential, or one quotient of polynomials, in vectors on every core
//
// On a GPU; times are of 2^28 f32, tanh, on an H200 (docs/optimizing.md):
//   unfused   5.74 ms: a launch for each operation of the formula, as a framework without fusion
//             makes them
//   naive     880 us: one thread for each element, the formulas with the library's erf and tanh
//   vec4      502 us: 16 bytes at a time; tanh as one exponential of the hardware

#include "kernels/api/kernel.h"

#ifndef __CUDACC__  // The CPU.
#include <cmath>
#include <limits>

#include "kernels/catalog/element.h"
#include "kernels/catalog/gelu_simd.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

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

template <typename T>
T NaiveGelu(T element, bool tanh) {
  using W = Wide<T>;
  const W x = Widen(element) < gelu::kSurelyZero<W> ? gelu::kSurelyZero<W> : Widen(element);
  const W inner = tanh ? std::tanh(W{gelu::kSqrt2OverPi} * (x + W{gelu::kCubic} * x * x * x))
                       : std::erf(x * W{M_SQRT1_2});
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

// In f64 the exact form is the C library's erfc on every core: no short polynomial has 53 bits.
absl::Status ExactF64(const Call& call) {
  const double* x = call.In<double>(0);
  double* y = call.Out<double>(0);
  constexpr std::int64_t kGrain = 512;
  call.threads->ParallelFor(
      Elements(call.InShape(0)), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const double v = x[i] < gelu::kSurelyZero<double> ? gelu::kSurelyZero<double> : x[i];
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
      simd::Map<T>(*call.threads, gelu::TanhForm(), call.Out<T>(0), n, call.In<T>(0));
    } else if constexpr (std::is_same_v<T, double>) {
      return ExactF64(call);
    } else {
      simd::Map<T>(*call.threads, gelu::ExactForm(), call.Out<T>(0), n, call.In<T>(0));
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

#else  // The GPU.
#include "kernels/catalog/cuda_map.cuh"
#include "kernels/catalog/gelu_cuda.cuh"

namespace gridclock {
namespace {

bool IsTanh(const Call& call) {
  return call.binding->Word("approximate") == "tanh";
}

absl::Status Naive(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t n = Elements(call.InShape(0));
    return IsTanh(call) ? cuda::Map(call, gelu::NaiveTanh(), call.Out<T>(0), n, call.In<T>(0))
                        : cuda::Map(call, gelu::Exact(), call.Out<T>(0), n, call.In<T>(0));
  });
}

absl::Status Vec4(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t n = Elements(call.InShape(0));
    return IsTanh(call) ? cuda::MapPacks(call, gelu::FastTanh(), call.Out<T>(0), n, call.In<T>(0))
                        : cuda::MapPacks(call, gelu::Exact(), call.Out<T>(0), n, call.In<T>(0));
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
    GC_RETURN_IF_ERROR(scale(gelu::kCubic, inner));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Plus(), inner, n, inner, x));
    GC_RETURN_IF_ERROR(scale(gelu::kSqrt2OverPi, inner));
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, Tanh(), inner, n, inner));
  } else {
    GC_RETURN_IF_ERROR(scale(gelu::kSqrt1Of2, x));
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
    GC_RETURN_IF_ERROR(cuda::MapPacks(call, gelu::AtSurelyZero(), x, n, call.In<T>(0)));
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

#endif  // __CUDACC__
