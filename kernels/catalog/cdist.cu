// Distances between the rows of two matrices, for each pair of a batch:
//   p = 2   d[i, j] = sqrt(sum over k of (a[i, k] - b[j, k])^2)
//   p = 1   d[i, j] = sum over k of |a[i, k] - b[j, k]|
//
// The sum of squares can be taken apart: |a|^2 + |b|^2 - 2 a b. That is a matrix product, half the
// work, and what is fastest everywhere is matrix products. But where two rows are near each other
// it is the difference of two large numbers: of rows around 10,000 that are 1 apart nothing is left
// in f32. The direct form sums terms of one sign and keeps its digits wherever the rows are. So it
// is the default, and the other has to be asked for.
//
//   naive    the formula, one thread
//   matmul   p = 2 by the product; the lengths of all rows first; on every core
//   direct   the blocks of a product (matmul_packed.h), each term a difference squared, or its
//            magnitude, instead of a product; on every core
//
// On a GPU, by the tiles of matmul_cuda.cuh; times are of 8192 x 8192 rows of 128 in f32 on an
// H200, where PyTorch's product form takes 0.96 ms, and its direct one took 88 ms:
//   naive    34.7 ms: one thread for each element of d
//   matmul   0.51 ms, three launches: the squared lengths of the rows of a, of those of b, and the
//            product, which ends in their sum and the root
//   direct   0.80 ms: 8x8 sums in the registers of each thread: two instructions for each term
//            where a product has one, and nothing read twice from memory. Of 32 terms each, which
//            are summed then: of one chain of 128 the largest error is 3.6 times that of PyTorch's
//            direct form, so it is 1.5 times. One block on an SM, not two, takes no longer.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/api/kernel.h"
#include "kernels/catalog/matmul_reference.h"
#include "kernels/catalog/matmul_sizes.h"

namespace gridclock {
namespace {

using matmul::Sizes;
using matmul::SizesOf;

// b stands by its rows, as the right side of a product would transposed.
Sizes SizesOfCall(const Binding& binding) {
  return SizesOf(binding, /*transpose_a=*/false, /*transpose_b=*/true, "D");
}

template <typename Term>
double SumPairs(const Binding& binding, ReferenceInput in, std::int64_t unit, Term term) {
  return matmul::SumTerms(binding, /*transpose_a=*/false, /*transpose_b=*/true, in, unit, term);
}

bool IsEuclidean(const Binding& binding) {
  return binding.F64("p") == 2;
}

// What is added up, and the root at the end.
std::int64_t Terms(const Binding& binding) {
  return binding.Dim("D") + 1;
}

double SumOf(const Binding& binding, ReferenceInput in, std::int64_t unit) {
  return SumPairs(binding, in, unit, [&](double a, double b) {
    return IsEuclidean(binding) ? (a - b) * (a - b) : std::fabs(a - b);
  });
}

// The tolerance of verify.h as a part of its scale, which no error of a part of all is above.
double ToleranceOf(const Binding& binding) {
  const bool is64 = binding.outputs[0].tensors[0].dtype == DType::kF64;
  const auto terms = static_cast<double>(std::min<std::int64_t>(Terms(binding), 4096));
  return 4 * (4 + std::sqrt(terms)) * (is64 ? 0x1p-53 : 0x1p-24);
}

// Squares below the least number are lost, and small ones lose digits: each is off by up to that
// number.
double LostSquares(const Binding& binding) {
  const bool is64 = binding.outputs[0].tensors[0].dtype == DType::kF64;
  return static_cast<double>(Terms(binding)) * (is64 ? 0x1p-1074 : 0x1p-149);
}

// What an error of the sum of squares is of its root, whose derivative it is at most, and at most
// its own root.
double OfRoot(double error, double root) {
  return root > 0 ? std::min(error / root, std::sqrt(error)) : std::sqrt(error);
}

// The product form is off by roundings of |a|^2 + |b|^2 + 2 |a b|, whatever is left of them: by e
// of the square S, so by less than e / sqrt(S) of the root and by less than sqrt(e). In the measure
// of verify.h, whose tolerance is that of its scale times 4 (4 + sqrt(c)) roundings. Where a
// distance and the product are infinite it makes inf - inf.
void MagnitudeOfProduct(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
                        std::span<double> result) {
  const double sum = SumOf(binding, in, unit);
  if (std::isinf(sum)) {
    const double product = SumPairs(binding, in, unit, [](double a, double b) { return a * b; });
    result[0] = product < std::numeric_limits<double>::infinity() ? sum : std::nan("");
    return;
  }
  const double all = SumPairs(
      binding, in, unit, [](double a, double b) { return a * a + b * b + 2 * std::fabs(a * b); });
  const double tolerance = ToleranceOf(binding);
  const double error = all * tolerance + LostSquares(binding);
  result[0] = OfRoot(error, std::sqrt(sum)) / tolerance;
}

}  // namespace
}  // namespace gridclock

#ifndef __CUDACC__  // The CPU.
#include "kernels/catalog/element.h"
#include "kernels/catalog/matmul_packed.h"
#include "kernels/catalog/reference.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const double sum = SumOf(binding, in, unit);
  result[0] = IsEuclidean(binding) ? std::sqrt(sum) : sum;
}

// Of p = 1 nothing is squared.
void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  const double sum = SumOf(binding, in, unit);
  result[0] = sum;
  if (!IsEuclidean(binding)) return;
  const double distance = std::sqrt(sum);
  result[0] = distance + OfRoot(LostSquares(binding), distance) / ToleranceOf(binding);
}

// Of both forms: the sum of (|a| + |b|)^2, or of |a| + |b|.
double Reach(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t) {
  return SumPairs(binding, in, unit, [&](double a, double b) {
    const double most = std::fabs(a) + std::fabs(b);
    return IsEuclidean(binding) ? most * most : most;
  });
}

// With a value of the call's dtype, of the two that the words let through.
template <typename Body>
absl::Status WithF64OrF32(const Call& call, Body body) {
  return call.InType(0) == DType::kF64 ? body(double{}) : body(float{});
}

// --- naive ---

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOfCall(*call.binding);
  const bool root = IsEuclidean(*call.binding);
  return WithF64OrF32(call, [&](auto element) {
    using T = decltype(element);
    for (std::int64_t unit = 0; unit < s.batch * s.m * s.n; ++unit) {
      const T* a = call.In<T>(0) + unit / s.n * s.k;
      const T* b = call.In<T>(1) + (unit / (s.m * s.n) * s.n + unit % s.n) * s.k;
      T sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k) {
        sum += root ? (a[k] - b[k]) * (a[k] - b[k]) : std::fabs(a[k] - b[k]);
      }
      call.Out<T>(0)[unit] = root ? std::sqrt(sum) : sum;
    }
    return absl::OkStatus();
  });
}

// --- matmul ---

template <typename T>
void SquaresOf(Threads& threads, const T* rows, T* squares, std::int64_t count,
               std::int64_t length) {
  const std::int64_t grain = simd::kGrain / std::max<std::int64_t>(1, length) + 1;
  threads.ParallelFor(count, grain, [&](std::int64_t begin, std::int64_t end) {
    namespace hn = simd::hn;
    const simd::Tag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t row = begin; row < end; ++row) {
      const T* x = rows + row * length;
      auto sums = hn::Zero(d);
      std::int64_t k = 0;
      for (; k + lanes <= length; k += lanes) {
        const auto v = hn::LoadU(d, x + k);
        sums = hn::MulAdd(v, v, sums);
      }
      const auto rest = simd::ReadPart<T>(d, x + k, static_cast<std::size_t>(length - k));
      squares[row] = hn::GetLane(hn::SumOfLanes(d, hn::MulAdd(rest, rest, sums)));
    }
  });
}

// Rounding can leave less than nothing; NaN stays NaN.
template <typename T>
struct FromProduct {
  const T* squares_a;
  const T* squares_b;
  Sizes s;

  void operator()(T* products, std::int64_t matrix, std::int64_t i, std::int64_t j,
                  std::int64_t n) const {
    const T of_row = squares_a[matrix * s.m + i];
    const auto root = [&](auto d, auto product, auto of_column) {
      namespace hn = simd::hn;
      const auto both = hn::Add(hn::Set(d, of_row), of_column);
      const auto square = hn::NegMulAdd(hn::Set(d, T{2}), product, both);
      return hn::Sqrt(simd::AtLeast(d, square, 0));
    };
    simd::MapRange<T>(root, products, 0, n, /*stream=*/false, products,
                      squares_b + matrix * s.n + j);
  }
};

absl::Status Matmul(const Call& call) {
  const Sizes s = SizesOfCall(*call.binding);
  return WithF64OrF32(call, [&](auto element) {
    using T = decltype(element);
    auto* squares_a = static_cast<T*>(call.scratch[0].data[0]);
    auto* squares_b = static_cast<T*>(call.scratch[1].data[0]);
    if (s.batch * s.m * s.n == 0) return absl::OkStatus();
    SquaresOf(*call.threads, call.In<T>(0), squares_a, s.batch * s.m, s.k);
    SquaresOf(*call.threads, call.In<T>(1), squares_b, s.batch * s.n, s.k);
    return matmul::Multiply<matmul::ProductTerm>(*call.threads, call.In<T>(0), call.In<T>(1),
                                                 call.Out<T>(0), s,
                                                 FromProduct<T>{squares_a, squares_b, s});
  });
}

// --- direct ---

struct SquareTerm {
  template <class D, class V>
  static HWY_INLINE V Add(D, V sum, V a, V b) {
    const auto difference = simd::hn::Sub(a, b);
    return simd::hn::MulAdd(difference, difference, sum);
  }
};
struct MagnitudeTerm {
  template <class D, class V>
  static HWY_INLINE V Add(D, V sum, V a, V b) {
    return simd::hn::Add(sum, simd::hn::Abs(simd::hn::Sub(a, b)));
  }
};

struct Root {
  template <typename T>
  void operator()(T* sums, std::int64_t, std::int64_t, std::int64_t, std::int64_t n) const {
    const auto root = [](auto, auto sum) { return simd::hn::Sqrt(sum); };
    simd::MapRange<T>(root, sums, 0, n, /*stream=*/false, sums);
  }
};

absl::Status Direct(const Call& call) {
  const Sizes s = SizesOfCall(*call.binding);
  return WithF64OrF32(call, [&](auto element) {
    using T = decltype(element);
    const T* a = call.In<T>(0);
    const T* b = call.In<T>(1);
    T* d = call.Out<T>(0);
    return IsEuclidean(*call.binding)
               ? matmul::Multiply<SquareTerm>(*call.threads, a, b, d, s, Root())
               : matmul::Multiply<MagnitudeTerm>(*call.threads, a, b, d, s, matmul::AsItIs());
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(cdist) {
  return {
      .words =
          "a: T[*, M, D], b: T[*, N, D] -> d: T[*, M, N]; p: f64 = 2 in {1, 2} "
          "where T in {f64, f32} flops 3*numel(d)*D",
      .summary = "Distances between the rows of two matrices, batched",
      .formula =
          "d[i, j] = sqrt(sum over k of (a[i, k] - b[j, k])^2), or for p = 1 "
          "sum over k of |a[i, k] - b[j, k]|",
      .notes =
          "direct is off by some roundings of the distance, wherever the rows are. matmul, for "
          "p = 2, is off by roundings of |a|^2 + |b|^2 under the root: of rows far from zero and "
          "near each other nothing may be left, and a row is not always 0 from itself; it is "
          "verified as such. Squares are kept as they are: of differences below 1e-19 (f64: "
          "1e-154) "
          "they lose digits, and of those below 2.6e-23 (1.5e-162) all, so that the distance is 0; "
          "where the squares of |a| + |b| come to more than 3.4e38 (1.8e308) it may be infinite, "
          "or "
          "NaN by matmul.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude,
                    .reach = Reach},
      .cpu = {{"naive", "The formula, one thread", Naive},
              {"matmul", "By |a|^2 + |b|^2 - 2ab, on every core; near rows lose their digits",
               Matmul,
               "when p == 2 scratch squares_a: T[numel(d) / max(1, N)] "
               "scratch squares_b: T[numel(d) / max(1, M)]",
               MagnitudeOfProduct},
              {"direct", "Packed blocks of differences, a tile of d in registers, every core",
               Direct}},
  };
}

#else  // The GPU.
#include "kernels/catalog/matmul_cuda.cuh"

namespace gridclock {
namespace {

// In f32 by the hardware's reciprocal root and one step of Newton, off by a rounding or so: an
// exact root is twenty instructions, for each of 64 sums of a thread. The step makes NaN of 0 and
// infinity.
__device__ inline double RootOf(double x) {
  return sqrt(x);
}
__device__ inline float RootOf(float x) {
  const float reciprocal = rsqrtf(x);
  const float root = x * reciprocal;
  const float corrected = fmaf(0.5F * reciprocal, fmaf(-root, root, x), root);
  return x > 0 && x < INFINITY ? corrected : x;
}

// --- naive ---

struct SquareTerm {
  static constexpr bool kFolded = true;
  template <typename W>
  static __device__ W Add(W sum, W a, W b) {
    const W difference = a - b;
    return sum + difference * difference;
  }
};
struct MagnitudeTerm {
  static constexpr bool kFolded = true;
  template <typename W>
  static __device__ W Add(W sum, W a, W b) {
    return sum + fabs(a - b);
  }
};

template <class Term, typename T>
__global__ void NaiveKernel(const T* a, const T* b, T* d, Sizes s, bool root) {
  const std::int64_t outputs = s.batch * s.m * s.n;
  for (std::int64_t unit = cuda::GridThread(); unit < outputs; unit += cuda::GridThreads()) {
    const T* left = a + unit / s.n * s.k;
    const T* right = b + (unit / (s.m * s.n) * s.n + unit % s.n) * s.k;
    T sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) sum = Term::Add(sum, left[k], right[k]);
    d[unit] = root ? sqrt(sum) : sum;
  }
}

absl::Status Naive(const Call& call) {
  constexpr std::int64_t kThreads = 256;
  const Sizes s = SizesOfCall(*call.binding);
  const std::int64_t outputs = s.batch * s.m * s.n;
  if (outputs == 0) return absl::OkStatus();
  return matmul::WithRegisters(call, [&](auto element) {
    using T = decltype(element);
    const bool root = IsEuclidean(*call.binding);
    return cuda::Launch(call, root ? NaiveKernel<SquareTerm, T> : NaiveKernel<MagnitudeTerm, T>,
                        {.grid = {cuda::Blocks(outputs, kThreads)}, .block = {kThreads}},
                        call.In<T>(0), call.In<T>(1), call.Out<T>(0), s, root);
  });
}

// Both sides lie along the depth, always.
template <class Term, typename T, class Finish>
absl::Status InTiles(const Call& call, const Sizes& s, const Finish& finish) {
  using matmul::Order;
  return matmul::RegisterTiledIn<Term, T, Order::kAlongDepth, Order::kAlongDepth>(call, s, finish);
}

// --- matmul ---

// One warp for each row: squares[row] = the sum of its squares.
template <typename T>
__global__ void SquaresKernel(const T* rows, T* squares, std::int64_t count, std::int64_t length) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t warps = cuda::GridThreads() / 32;
  for (std::int64_t row = cuda::GridThread() / 32; row < count; row += warps) {
    T sum = 0;
    for (std::int64_t k = lane; k < length; k += 32) {
      sum += rows[row * length + k] * rows[row * length + k];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFF, sum, distance);
    }
    if (lane == 0) squares[row] = sum;
  }
}

template <typename T>
absl::Status SquaresOf(const Call& call, const T* rows, T* squares, std::int64_t count,
                       std::int64_t length) {
  constexpr std::int64_t kThreads = 256;
  return cuda::Launch(call, SquaresKernel<T>,
                      {.grid = {cuda::Blocks(count, kThreads / 32)}, .block = {kThreads}}, rows,
                      squares, count, length);
}

// Rounding can leave less than nothing; NaN stays NaN.
template <typename T>
struct FromProduct {
  const T* squares_a;
  const T* squares_b;
  std::int64_t m, n;

  template <typename W>
  __device__ W Row(std::int64_t matrix, std::int64_t i) const {
    return squares_a[matrix * m + i];
  }
  template <typename W>
  __device__ W Column(std::int64_t matrix, std::int64_t j) const {
    return squares_b[matrix * n + j];
  }
  __device__ T operator()(T product, T of_row, T of_column) const {
    const T square = of_row + of_column - 2 * product;
    return RootOf(square < 0 ? T{0} : square);
  }
};

absl::Status Matmul(const Call& call) {
  const Sizes s = SizesOfCall(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  return matmul::WithRegisters(call, [&](auto element) {
    using T = decltype(element);
    auto* squares_a = static_cast<T*>(call.scratch[0].data[0]);
    auto* squares_b = static_cast<T*>(call.scratch[1].data[0]);
    GC_RETURN_IF_ERROR(SquaresOf(call, call.In<T>(0), squares_a, s.batch * s.m, s.k));
    GC_RETURN_IF_ERROR(SquaresOf(call, call.In<T>(1), squares_b, s.batch * s.n, s.k));
    return InTiles<matmul::ProductTerm, T>(call, s, FromProduct<T>{squares_a, squares_b, s.m, s.n});
  });
}

// --- direct ---

struct Root : matmul::AsItIs {
  template <typename W>
  __device__ W operator()(W sum, W, W) const {
    return RootOf(sum);
  }
};

absl::Status Direct(const Call& call) {
  const Sizes s = SizesOfCall(*call.binding);
  return matmul::WithRegisters(call, [&](auto element) {
    using T = decltype(element);
    return IsEuclidean(*call.binding) ? InTiles<SquareTerm, T>(call, s, Root())
                                      : InTiles<MagnitudeTerm, T>(call, s, matmul::AsItIs());
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(cdist) {
  return {{"naive", "One thread for each element of d", Naive},
          {"matmul", "Three launches, by |a|^2 + |b|^2 - 2ab; near rows lose their digits", Matmul,
           "when p == 2 scratch squares_a: T[numel(d) / max(1, N)] "
           "scratch squares_b: T[numel(d) / max(1, M)]",
           MagnitudeOfProduct},
          {"direct", "8x8 sums of differences in the registers of each thread", Direct}};
}

#endif  // __CUDACC__
