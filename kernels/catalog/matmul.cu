// Matrix product: c = op(a) op(b), for each matrix of a batch; op transposes where ta or tb say so.
//
//   naive    one dot product for each element of c: reads b against its grain
//   tiled    blocks that fit the first cache, and loops in the order of memory
//   packed   blocks of a and b are copied into the order in which a small kernel reads them; the
//            kernel keeps a tile of c in registers. Each thread makes its own part of c. Small
//            matrices of f32 and f64 are read where they lie: 1,024 products of 64 x 64 take three
//            quarters of the time. Of bf16 matrix units (AMX) multiply, where the CPU has them,
//            five to six times as fast, or else instructions that add two products at once
//            (AVX512_BF16), twice as fast
//
// On a GPU, the tiles by the kernels of matmul_cuda.cuh; times are of 4096 cubed in f32 on an H200:
//   naive            28.8 ms: one thread for each element of c: each number is brought from memory,
//                    or a cache, for every multiplication
//   tiled            10.5 ms: a block makes a tile of c from strips of a and b in shared memory.
//                    Memory is no longer the limit, but shared memory is, which two loads for each
//                    four multiplications keep busy
//   register_tiled   3.27 ms: 8x8 sums in the registers of each thread, and the next strips on
//                    their way while one is summed: what is left is the multiplication itself
//   cublaslt_tf32    0.34 ms: NVIDIA's library, factors rounded to tf32 (10 bits behind the point)
//                    for tensor cores: nearly eight times as fast as f32, and a thousandth as exact
//   cublaslt         2.68 ms: NVIDIA's library, where it is installed; f32 in full

#include "kernels/api/kernel.h"
#include "kernels/catalog/matmul_reference.h"
#include "kernels/catalog/matmul_sizes.h"

#ifndef __CUDACC__  // The CPU.
#include <algorithm>
#include <cmath>

#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_packed.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

using matmul::Sizes;
using matmul::SizesOf;

std::int64_t Terms(const Binding& binding) {
  return std::max<std::int64_t>(1, binding.Dim("K"));
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = matmul::SumTerms(binding, in, unit, [](double a, double b) { return a * b; });
}

double SumOfMagnitudes(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  return matmul::SumTerms(binding, in, unit, [](double a, double b) { return std::fabs(a * b); });
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t output,
               std::span<double> result) {
  result[0] = SumOfMagnitudes(binding, in, unit, output);
}

template <typename T>
void NaiveMatmul(const T* a, const T* b, T* c, const Sizes& s) {
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      Wide<T> sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += Widen(a[i * s.a.row + k * s.a.column]) * Widen(b[k * s.b.row + j * s.b.column]);
      }
      c[i * s.n + j] = Narrow<T>(sum);
    }
  }
}

// The tile of c at (i0, j0), in a buffer of wide elements.
template <typename T, std::int64_t kTile>
void OneTile(const T* a, const T* b, T* c, const Sizes& s, std::int64_t i0, std::int64_t j0) {
  Wide<T> tile[kTile][kTile] = {};
  const std::int64_t rows = std::min(kTile, s.m - i0), columns = std::min(kTile, s.n - j0);
  for (std::int64_t k0 = 0; k0 < s.k; k0 += kTile) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t k = k0; k < std::min(s.k, k0 + kTile); ++k) {
        const Wide<T> left = Widen(a[(i0 + i) * s.a.row + k * s.a.column]);
        const T* right = b + k * s.b.row + j0 * s.b.column;
        for (std::int64_t j = 0; j < columns; ++j)
          tile[i][j] += left * Widen(right[j * s.b.column]);
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[(i0 + i) * s.n + j0 + j] = Narrow<T>(tile[i][j]);
  }
}

template <typename T>
void TiledMatmul(const T* a, const T* b, T* c, const Sizes& s) {
  constexpr std::int64_t kTile = 48;
  for (std::int64_t i = 0; i < s.m; i += kTile) {
    for (std::int64_t j = 0; j < s.n; j += kTile) OneTile<T, kTile>(a, b, c, s, i, j);
  }
}

// `one` on every matrix of the batch.
template <auto kOne, typename T>
void EachMatrix(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t i = 0; i < s.batch; ++i) {
    kOne(call.In<T>(0) + i * s.m * s.k, call.In<T>(1) + i * s.k * s.n,
         call.Out<T>(0) + i * s.m * s.n, s);
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachMatrix<&NaiveMatmul<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Tiled(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachMatrix<&TiledMatmul<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Packed(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return matmul::Multiply<matmul::ProductTerm>(*call.threads, call.In<T>(0), call.In<T>(1),
                                                 call.Out<T>(0), SizesOf(*call.binding),
                                                 matmul::AsItIs());
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(matmul) {
  return {
      .words =
          "a: T[*, ta ? [K, M] : [M, K]], b: T[*, tb ? [N, K] : [K, N]] -> c: T[*, M, N]; "
          "ta: bool = false, tb: bool = false where T in {f64, f32, f16, bf16} "
          "flops 2*numel(c)*K",
      .summary = "Matrix product, batched, either side transposed",
      .formula = "c[i, j] = sum over k of a[i, k] b[k, j]",
      .notes =
          "Accumulated in f32 (f64 for f64); f16 and bf16 results are rounded once. cublaslt_tf32 "
          "rounds its factors to 10 bits behind the point, so that a term is off by up to 2^-9 of "
          "itself, and the largest numbers are infinite; it is verified as such, and never chosen "
          "unless named. Where the magnitudes of the products come to more than 3.4e38 (f64: "
          "1.8e308), an element is the sum, an infinity or NaN, as the order has it.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude,
                    .reach = SumOfMagnitudes},
      .cpu = {{"naive", "One dot product for each element of c, one thread", Naive},
              {"tiled", "Blocks that fit the first cache, one thread", Tiled},
              {"packed",
               "Packed blocks, a tile of c in registers, every core; bf16 by AMX or AVX512_BF16",
               Packed}},
  };
}

#else  // The GPU.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "kernels/catalog/cublaslt.cuh"
#include "kernels/catalog/matmul_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Narrow;
using cuda::Wide;
using cuda::Widen;
using matmul::Sizes;
using matmul::SizesOf;

// --- naive ---

template <typename T>
__global__ void NaiveKernel(const T* a, const T* b, T* c, Sizes s) {
  const std::int64_t outputs = s.batch * s.m * s.n;
  for (std::int64_t unit = cuda::GridThread(); unit < outputs; unit += cuda::GridThreads()) {
    const std::int64_t i = unit / s.n % s.m, j = unit % s.n, matrix = unit / (s.m * s.n);
    const T* left = a + matrix * s.m * s.k + i * s.a.row;
    const T* right = b + matrix * s.k * s.n + j * s.b.column;
    Wide<T> sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) {
      sum += Widen(left[k * s.a.column]) * Widen(right[k * s.b.row]);
    }
    c[unit] = Narrow<T>(sum);
  }
}

absl::Status Naive(const Call& call) {
  constexpr std::int64_t kThreads = 256;
  const Sizes s = SizesOf(*call.binding);
  const std::int64_t outputs = s.batch * s.m * s.n;
  if (outputs == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Launch(call, NaiveKernel<T>,
                        {.grid = {cuda::Blocks(outputs, kThreads)}, .block = {kThreads}},
                        call.In<T>(0), call.In<T>(1), call.Out<T>(0), s);
  });
}

// --- tiled, register_tiled ---

absl::Status Tiled(const Call& call) {
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    return matmul::Tiled<matmul::ProductTerm, decltype(element)>(call, SizesOf(*call.binding),
                                                                 matmul::AsItIs());
  });
}

absl::Status RegisterTiled(const Call& call) {
  return matmul::WithRegisters(call, [&](auto element) {
    return matmul::RegisterTiled<matmul::ProductTerm, decltype(element)>(
        call, SizesOf(*call.binding), matmul::AsItIs());
  });
}

// --- cublaslt ---

#ifdef GRIDCLOCK_HAS_CUBLASLT
absl::Status ByLibrary(const Call& call, bool tf32) {
  const Sizes s = SizesOf(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  if (s.k == 0) {  // The sum of nothing.
    const auto bytes = static_cast<std::size_t>(Bytes(call.outputs[0].value->tensors[0]));
    cuda::CountLaunch(call);
    return cuda::ToStatus(
        cudaMemsetAsync(call.Out<char>(0), 0, bytes, static_cast<cudaStream_t>(call.stream)),
        "memset");
  }
  return cublaslt::Multiply(call,
                            {.batch = s.batch,
                             .m = s.m,
                             .n = s.n,
                             .k = s.k,
                             .transpose_a = call.binding->Bool("ta"),
                             .transpose_b = call.binding->Bool("tb"),
                             .dtype = call.InType(0),
                             .tf32 = tf32},
                            call.Out<char>(0));
}

absl::Status CublasLt(const Call& call) {
  return ByLibrary(call, /*tf32=*/false);
}
absl::Status CublasLtTf32(const Call& call) {
  return ByLibrary(call, /*tf32=*/true);
}
#endif

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(matmul) {
  std::vector<Variant> variants = {
      {"naive", "One thread for each element of c", Naive},
      {"tiled", "Tiles in shared memory, 4x4 sums in the registers of each thread", Tiled},
      {"register_tiled", "8x8 sums in the registers of each thread, strips fetched ahead; f32, f64",
       RegisterTiled, matmul::kRegisterTiledTakes}};
#ifdef GRIDCLOCK_HAS_CUBLASLT
  if (cublaslt::IsHere()) {
    // Of a call that both take the last is the default: tf32 is never taken unasked.
    variants.push_back(
        {"cublaslt_tf32",
         "NVIDIA's library; f32 whose factors are rounded to tf32, and verified as such",
         CublasLtTf32, absl::StrCat("when T == f32 && ", cublaslt::kTakes, cublaslt::kScratch),
         matmul::MagnitudeOfTf32, DType::kF16, /*part_of_rate=*/0.5});
    variants.push_back({"cublaslt", "NVIDIA's library; f32 in full f32, never tf32", CublasLt,
                        absl::StrCat("when ", cublaslt::kTakes, cublaslt::kScratch)});
  }
#endif
  return variants;
}

#endif  // __CUDACC__
