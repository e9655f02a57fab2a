// A layer of a network: c = gelu(op(a) op(b) + bias), bias along the columns of c, for each matrix
// of a batch; op transposes where ta or tb say so, and gelu is that of gelu.cu, by tanh or exact.
// Apart from the product this reads and writes c twice more; what follows is about not doing that.
//
//   naive    one dot product for each element of c, then bias and gelu, one thread
//   packed   the product of matmul.packed; bias and gelu of a block of c as soon as its sums are
//            whole and still in a cache, on every core
//
// On a GPU, the products by the kernels of matmul_cuda.cuh; times are of 4096 cubed in f32 on an
// H200, where the product outweighs all else:
//   unfused          10.7 ms, two launches: the product, as wide as it is summed, then bias and
//                    gelu in a second pass over all of c
//   tiled            10.8 ms: bias and gelu while the sums are in registers: c is written once. No
//                    gain: what a pass over c takes is lost beside a product that waits for shared
//                    memory
//   register_tiled   3.26 ms: the same in the faster product, of f32 and f64
//   cublaslt         2.72 ms, two launches: NVIDIA's product, as wide as it is summed, then bias
//                    and gelu; of bf16 208 us, where tiled takes 13.6 ms without tensor cores.
//                    Of f32 the product adds the bias, where the library can: with one it has
//                    faster kernels. Its whole end (CUBLASLT_EPILOGUE_GELU_BIAS) saves the second
//                    launch, but is not this function: of 16 bits, where sizes are odd, it is off
//                    by up to 17 of our tolerances and NaN where x^3 overflows f16; of -inf it
//                    makes NaN.

#include "kernels/api/kernel.h"
#include "kernels/catalog/matmul_sizes.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/gelu_simd.h"
#include "kernels/catalog/matmul_packed.h"
#include "kernels/catalog/matmul_reference.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

using matmul::Sizes;
using matmul::SizesOf;

bool IsTanh(const Binding& binding) {
  return binding.Word("approximate") == "tanh";
}

std::int64_t Terms(const Binding& binding) {
  return binding.Dim("K") + 1;
}

double Before(const Binding& binding, ReferenceInput in, std::int64_t unit) {
  return matmul::SumTerms(binding, in, unit, [](double a, double b) { return a * b; }) +
         in(2, unit % binding.Dim("N"));
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double x = Before(binding, in, unit);
  const double inner = IsTanh(binding) ? std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))
                                       : std::erf(x / std::sqrt(2.0));
  result[0] = std::isinf(x) && x < 0 ? -0.0 : 0.5 * x * (1 + inner);  // There -inf * 0 is NaN.
}

double SumOfMagnitudes(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  return matmul::SumTerms(binding, in, unit, [](double a, double b) { return std::fabs(a * b); }) +
         std::fabs(in(2, unit % binding.Dim("N")));
}

// The error of the sum, which the steepest slope of gelu makes larger by 1.13, and that of gelu
// itself: some roundings of what it is given, which is no larger than the sum of magnitudes.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  result[0] =
      1.13 * SumOfMagnitudes(binding, in, unit, output) + std::fabs(Before(binding, in, unit));
}

// --- naive ---

template <typename T>
T NaiveGelu(Wide<T> sum, bool tanh) {
  using W = Wide<T>;
  const W x = sum < gelu::kSurelyZero<W> ? gelu::kSurelyZero<W> : sum;
  const W inner = tanh ? std::tanh(static_cast<W>(gelu::kSqrt2OverPi) *
                                   (x + static_cast<W>(gelu::kCubic) * x * x * x))
                       : std::erf(x * static_cast<W>(M_SQRT1_2));
  return Narrow<T>(W{0.5} * x * (1 + inner));
}

template <typename T>
void NaiveMatrix(const T* a, const T* b, const T* bias, T* c, const Sizes& s, bool tanh) {
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      Wide<T> sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += Widen(a[i * s.a.row + k * s.a.column]) * Widen(b[k * s.b.row + j * s.b.column]);
      }
      c[i * s.n + j] = NaiveGelu<T>(sum + Widen(bias[j]), tanh);
    }
  }
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < s.batch; ++i) {
      NaiveMatrix(call.In<T>(0) + i * s.m * s.k, call.In<T>(1) + i * s.k * s.n, call.In<T>(2),
                  call.Out<T>(0) + i * s.m * s.n, s, IsTanh(*call.binding));
    }
    return absl::OkStatus();
  });
}

// --- packed ---

template <typename T, class Form>
struct VectorFinish {
  const T* bias;

  template <typename W>
  void operator()(W* sums, std::int64_t, std::int64_t, std::int64_t j, std::int64_t n) const {
    const auto finish = [](auto d, auto sum, auto of_column) {
      return Form()(d, simd::hn::Add(sum, of_column));
    };
    simd::MapRange<W>(finish, sums, 0, n, /*stream=*/false, sums, bias + j);
  }
};

// In f64 the exact form is the C library's erfc: no short polynomial has 53 bits.
struct ExactF64Finish {
  const double* bias;

  void operator()(double* sums, std::int64_t, std::int64_t, std::int64_t j, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = std::max(sums[i] + bias[j + i], gelu::kSurelyZero<double>);
      sums[i] = 0.5 * x * std::erfc(-x * M_SQRT1_2);
    }
  }
};

template <typename T, class Finish>
absl::Status PackedWith(const Call& call, const Finish& finish) {
  return matmul::Multiply<matmul::ProductTerm>(*call.threads, call.In<T>(0), call.In<T>(1),
                                               call.Out<T>(0), SizesOf(*call.binding), finish);
}

absl::Status Packed(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const T* bias = call.In<T>(2);
    if (IsTanh(*call.binding)) {
      return PackedWith<T>(call, VectorFinish<T, gelu::TanhForm>{bias});
    }
    if constexpr (std::is_same_v<T, double>) {
      return PackedWith<T>(call, ExactF64Finish{bias});
    } else {
      return PackedWith<T>(call, VectorFinish<T, gelu::ExactForm>{bias});
    }
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(matmul_bias_gelu) {
  return {
      .words =
          "a: T[*, ta ? [K, M] : [M, K]], b: T[*, tb ? [N, K] : [K, N]], bias: T[N] "
          "-> c: T[*, M, N]; ta: bool = false, tb: bool = false, "
          "approximate: {tanh, none} = tanh where T in {f64, f32, f16, bf16} "
          "flops 2*numel(c)*K + 10*numel(c)",
      .summary = "Matrix product, bias and GELU in one, batched, either side transposed",
      .formula = "c[i, j] = gelu(sum over k of a[i, k] b[k, j] + bias[j])",
      .notes =
          "Summed and finished in f32 (f64 for f64), and rounded once. gelu is that of gelu, "
          "gelu(-inf) = -0 included. Where the magnitudes of the terms come to more than 3.4e38 "
          "(f64: 1.8e308), the sum may be an infinity or NaN, as the order has it, and the element "
          "is what gelu makes of that.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude,
                    .reach = SumOfMagnitudes},
      .cpu = {{"naive", "One dot product for each element of c, one thread", Naive},
              {"packed", "matmul's packed blocks; bias and gelu as a block is done, every core",
               Packed}},
  };
}

#else  // The GPU.
#include "absl/strings/str_cat.h"
#include "kernels/catalog/cublaslt.cuh"
#include "kernels/catalog/cuda_map.cuh"
#include "kernels/catalog/gelu_cuda.cuh"
#include "kernels/catalog/matmul_cuda.cuh"

namespace gridclock {
namespace {

using matmul::Sizes;
using matmul::SizesOf;

// What becomes of a sum: bias is read once for each column of a tile.
template <typename T>
struct BiasGelu {
  const T* bias;
  bool tanh;

  static BiasGelu Make(const Call& call) {
    return {call.In<T>(2), call.binding->Word("approximate") == "tanh"};
  }
  template <typename W>
  __device__ W Row(std::int64_t, std::int64_t) const {
    return 0;
  }
  template <typename W>
  __device__ W Column(std::int64_t, std::int64_t j) const {
    return cuda::Widen(bias[j]);
  }
  template <typename W>
  __device__ W operator()(W sum, W, W of_column) const {
    const W x = sum + of_column;
    return tanh ? gelu::FastTanh()(x) : gelu::Exact()(x);
  }
};

// --- unfused ---

// Of sums in memory, which may be c itself: each element is read and written by one thread. A block
// has kThreads * kEach columns of a row.
constexpr std::int64_t kThreads = 256, kEach = 4;

template <typename T>
__global__ void FinishKernel(const cuda::Wide<T>* sums, T* c, std::int64_t rows,
                             std::int64_t columns, std::int64_t parts, BiasGelu<T> finish) {
  using W = cuda::Wide<T>;
  for (std::int64_t part = blockIdx.x; part < rows * parts; part += gridDim.x) {
    const std::int64_t row = part / parts;
    const std::int64_t first = (part - row * parts) * (kThreads * kEach) + threadIdx.x;
#pragma unroll
    for (int u = 0; u < kEach; ++u) {
      const std::int64_t column = first + u * kThreads;
      if (column >= columns) break;
      const std::int64_t at = row * columns + column;
      c[at] = cuda::Narrow<T>(finish(sums[at], W{0}, finish.template Column<W>(0, column)));
    }
  }
}

// The same, 16 bytes of c at a time: a block row is a row of c, or every 65,535th.
template <typename T, class Form>
__global__ void FinishPacksKernel(const cuda::Wide<T>* sums, const T* bias, T* c, std::int64_t rows,
                                  std::int64_t columns) {
  using W = cuda::Wide<T>;
  constexpr int kLanes = cuda::Pack<T>::kCount, kOfSums = cuda::Pack<W>::kCount;
  const std::int64_t column = cuda::GridThread() * kLanes;
  if (column >= columns) return;
  const cuda::Pack<T> of_column = cuda::LoadPack(bias + column);
  cuda::WaitForKernelBefore();
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const std::int64_t at = row * columns + column;
    cuda::Pack<W> in[kLanes / kOfSums];
#pragma unroll
    for (int k = 0; k < kLanes / kOfSums; ++k) in[k] = cuda::LoadPack(sums + at + k * kOfSums);
    cuda::Pack<T> out;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const W sum = in[lane / kOfSums].lane[lane % kOfSums];
      out.lane[lane] = cuda::Narrow<T>(Form()(sum + cuda::Widen(of_column.lane[lane])));
    }
    cuda::StorePack(c + at, out);
  }
}

template <typename T, class Form>
absl::Status FinishPacks(const Call& call, const Sizes& s, const cuda::Wide<T>* sums) {
  constexpr std::int64_t kMostRows = 65535;
  const std::int64_t packs = s.n / cuda::Pack<T>::kCount, rows = s.batch * s.m;
  const std::int64_t threads = std::min(kThreads, (packs + 31) / 32 * 32);
  return cuda::Launch(call, FinishPacksKernel<T, Form>,
                      {.grid = {cuda::Blocks(packs, threads), std::min(rows, kMostRows)},
                       .block = {threads},
                       .early = true},
                      sums, call.In<T>(2), call.Out<T>(0), rows, s.n);
}

template <typename T>
absl::Status Finish(const Call& call, const Sizes& s, const cuda::Wide<T>* sums) {
  const auto finish = BiasGelu<T>::Make(call);
  if (s.n % cuda::Pack<T>::kCount == 0 && cuda::AreAligned(call.Out<T>(0), finish.bias, sums)) {
    return finish.tanh ? FinishPacks<T, gelu::FastTanh>(call, s, sums)
                       : FinishPacks<T, gelu::Exact>(call, s, sums);
  }
  const std::int64_t parts = (s.n + kThreads * kEach - 1) / (kThreads * kEach);
  const std::int64_t rows = s.batch * s.m;
  return cuda::Launch(call, FinishKernel<T>,
                      {.grid = {cuda::Blocks(rows * parts, 1)}, .block = {kThreads}}, sums,
                      call.Out<T>(0), rows, s.n, parts, finish);
}

// In place, of sums that have their bias.
template <typename T>
absl::Status Gelu(const Call& call, T* c, std::int64_t n) {
  return BiasGelu<T>::Make(call).tanh ? cuda::MapPacks(call, gelu::FastTanh(), c, n, c)
                                      : cuda::MapPacks(call, gelu::Exact(), c, n, c);
}

absl::Status Unfused(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    auto* sums = static_cast<cuda::Wide<T>*>(call.scratch[0].data[0]);
    GC_RETURN_IF_ERROR((matmul::TiledInto<matmul::ProductTerm>(
        call, s, matmul::AsItIs(), call.In<T>(0), call.In<T>(1), sums)));
    return Finish<T>(call, s, sums);
  });
}

// --- tiled, register_tiled ---

absl::Status Tiled(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return matmul::Tiled<matmul::ProductTerm, T>(call, SizesOf(*call.binding),
                                                 BiasGelu<T>::Make(call));
  });
}

absl::Status RegisterTiled(const Call& call) {
  return matmul::WithRegisters(call, [&](auto element) {
    using T = decltype(element);
    return matmul::RegisterTiled<matmul::ProductTerm, T>(call, SizesOf(*call.binding),
                                                         BiasGelu<T>::Make(call));
  });
}

// --- cublaslt ---

#ifdef GRIDCLOCK_HAS_CUBLASLT
absl::Status CublasLt(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  if (s.k == 0) return Tiled(call);  // gelu(bias): the library does not multiply nothing.
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    constexpr bool kNarrow = sizeof(T) < sizeof(cuda::Wide<T>);
    // PyTorch too lets the library add it to one matrix of several rows and columns alone.
    const bool may_add = std::is_same_v<T, float> && s.batch == 1 && s.m > 1 && s.n > 1 && s.k > 1;
    void* sums = kNarrow ? call.scratch[1].data[0] : call.Out<T>(0);
    const cublaslt::Product product{.batch = s.batch,
                                    .m = s.m,
                                    .n = s.n,
                                    .k = s.k,
                                    .transpose_a = call.binding->Bool("ta"),
                                    .transpose_b = call.binding->Bool("tb"),
                                    .dtype = call.InType(0),
                                    .wide_c = kNarrow,
                                    .bias = may_add};
    GC_ASSIGN_OR_RETURN(const bool added, cublaslt::MultiplyAndAdd(call, product, sums));
    if (added) return Gelu(call, call.Out<T>(0), s.m * s.n);
    return Finish<T>(call, s, static_cast<const cuda::Wide<T>*>(sums));
  });
}
#endif

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(matmul_bias_gelu) {
  std::vector<Variant> variants = {
      {"unfused", "Two launches: the product, then bias and gelu over all of it", Unfused,
       "scratch sums: u8[numel(c) * max(sizeof(T), 4)]"},
      {"tiled", "Bias and gelu while the sums are in registers", Tiled},
      {"register_tiled", "The same after 8x8 sums in the registers of each thread; f32, f64",
       RegisterTiled, matmul::kRegisterTiledTakes}};
#ifdef GRIDCLOCK_HAS_CUBLASLT
  if (cublaslt::IsHere()) {
    variants.push_back({"cublaslt", "NVIDIA's product, f32 in full, then bias and gelu", CublasLt,
                        absl::StrCat("when ", cublaslt::kTakes, cublaslt::kScratch,
                                     " scratch sums: u8[sizeof(T) < 4 ? numel(c) * 4 : 0]")});
  }
#endif
  return variants;
}

#endif  // __CUDACC__
