// Matrix product: c = op(a) op(b), for each matrix of a batch; op transposes where ta or tb say so.
//
//   naive    one dot product for each element of c: reads b against its grain
//   tiled    blocks that fit the first cache, and loops in the order of memory
//   packed   blocks of a and b are copied into the order in which a small kernel reads them; the
//            kernel keeps a tile of c in registers. Each thread makes its own part of c.
//
// On a GPU:
//   naive      one thread for each element of c
//   tiled      a block makes a tile of c from strips of a and b in shared memory
//   cublaslt   NVIDIA's library, where it is installed

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

// One operand as the product sees it: element (i, j) lies at i * rows + j * columns.
struct Strides {
  std::int64_t row = 0, column = 0;
};

struct Sizes {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  Strides a, b;
};

Sizes SizesOf(const Binding& binding) {
  Sizes s;
  s.m = binding.Dim("M");
  s.n = binding.Dim("N");
  s.k = binding.Dim("K");
  const Shape& c = binding.outputs[0].tensors[0].shape;
  for (std::size_t i = 0; i + 2 < c.size(); ++i) s.batch *= c[i];
  s.a = binding.Bool("ta") ? Strides{1, s.m} : Strides{s.k, 1};
  s.b = binding.Bool("tb") ? Strides{1, s.k} : Strides{s.n, 1};
  return s;
}

}  // namespace
}  // namespace gridclock

#ifdef __CUDACC__
#include "kernels/catalog/cublaslt.cuh"
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

using cuda::Narrow;
using cuda::Wide;
using cuda::Widen;

constexpr int kThreads = 256;

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

// --- tiled ---

// A block makes a tile of c. It brings strips of a and b, kDepth wide, into shared memory, where
// each element is used by kTile sums; each thread keeps kEach x kEach of the sums in registers.
constexpr int kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;
static_assert(kSide * kSide == kThreads);

// strip[k][i] = element (first + i, k0 + k) of a matrix of `rows` rows; zeros beyond its edges.
// Threads that stand beside each other read what lies beside each other in memory.
template <typename T>
__device__ void LoadStrip(const T* matrix, Strides at, std::int64_t rows, std::int64_t depth,
                          std::int64_t first, std::int64_t k0,
                          Wide<T> (&strip)[kDepth][kTile + 1]) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool along_depth = at.column == 1;
#pragma unroll
  for (int u = 0; u < kTile * kDepth / kThreads; ++u) {
    const int index = thread + u * kThreads;
    const int k = along_depth ? index % kDepth : index / kTile;
    const int i = along_depth ? index / kDepth : index % kTile;
    const bool inside = first + i < rows && k0 + k < depth;
    strip[k][i] = inside ? Widen(matrix[(first + i) * at.row + (k0 + k) * at.column]) : Wide<T>{0};
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    TiledKernel(const T* a, const T* b, T* c, Sizes s, std::int64_t tiles_m, std::int64_t tiles_n) {
  using W = Wide<T>;
  // One more column than is used, so that threads that write down a column meet other banks.
  __shared__ W left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  for (std::int64_t task = blockIdx.x; task < s.batch * tiles_m * tiles_n; task += gridDim.x) {
    const std::int64_t matrix = task / (tiles_m * tiles_n);
    const std::int64_t i0 = task / tiles_n % tiles_m * kTile, j0 = task % tiles_n * kTile;
    W sums[kEach][kEach] = {};
    for (std::int64_t k0 = 0; k0 < s.k; k0 += kDepth) {
      LoadStrip(a + matrix * s.m * s.k, s.a, s.m, s.k, i0, k0, left);
      LoadStrip(b + matrix * s.k * s.n, {s.b.column, s.b.row}, s.n, s.k, j0, k0, right);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
          for (int j = 0; j < kEach; ++j) {
            sums[i][j] += left[k][y + i * kSide] * right[k][x + j * kSide];
          }
        }
      }
      __syncthreads();
    }
    for (int i = 0; i < kEach; ++i) {
      for (int j = 0; j < kEach; ++j) {
        const std::int64_t row = i0 + y + i * kSide, column = j0 + x + j * kSide;
        if (row < s.m && column < s.n) {
          c[(matrix * s.m + row) * s.n + column] = Narrow<T>(sums[i][j]);
        }
      }
    }
  }
}

absl::Status Tiled(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  const std::int64_t tiles_m = (s.m + kTile - 1) / kTile, tiles_n = (s.n + kTile - 1) / kTile;
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    return cuda::Launch(
        call, TiledKernel<T>,
        {.grid = {cuda::Blocks(s.batch * tiles_m * tiles_n, 1)}, .block = {kThreads}},
        call.In<T>(0), call.In<T>(1), call.Out<T>(0), s, tiles_m, tiles_n);
  });
}

#ifdef GRIDCLOCK_HAS_CUBLASLT
absl::Status CublasLt(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.batch * s.m * s.n == 0) return absl::OkStatus();
  if (s.k == 0) {  // The sum of nothing.
    const auto bytes = static_cast<std::size_t>(Bytes(call.outputs[0].value->tensors[0]));
    return cuda::ToStatus(
        cudaMemsetAsync(call.Out<char>(0), 0, bytes, static_cast<cudaStream_t>(call.stream)),
        "memset");
  }
  return cublaslt::Multiply(call, {.batch = s.batch,
                                   .m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .transpose_a = call.binding->Bool("ta"),
                                   .transpose_b = call.binding->Bool("tb"),
                                   .dtype = call.InType(0)});
}
#endif

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(matmul) {
  std::vector<Variant> variants = {
      {"naive", "One thread for each element of c", Naive},
      {"tiled", "Tiles in shared memory, 4x4 sums in the registers of each thread", Tiled}};
#ifdef GRIDCLOCK_HAS_CUBLASLT
  if (cublaslt::IsHere()) {
    variants.push_back({"cublaslt", "NVIDIA's library; f32 in full f32, never tf32", CublasLt,
                        "when max(M, N, K) <= 2147483647 && numel(c) / max(1, M * N) <= 2147483647 "
                        "scratch workspace: u8[33554432]"});
  }
#endif
  return variants;
}

#else  // The CPU.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

std::int64_t Terms(const Binding& binding) {
  return std::max<std::int64_t>(1, binding.Dim("K"));
}

// Sums term(a, b) over the terms of element `unit` of c.
template <typename Term>
double SumTerms(const Binding& binding, ReferenceInput in, std::int64_t unit, Term term) {
  const Sizes s = SizesOf(binding);
  const std::int64_t i = unit / s.n % s.m, j = unit % s.n, batch = unit / (s.m * s.n);
  double sum = 0;
  for (std::int64_t k = 0; k < s.k; ++k) {
    sum += term(in(0, batch * s.m * s.k + i * s.a.row + k * s.a.column),
                in(1, batch * s.k * s.n + k * s.b.row + j * s.b.column));
  }
  return sum;
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  result[0] = SumTerms(binding, in, unit, [](double a, double b) { return a * b; });
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  result[0] = SumTerms(binding, in, unit, [](double a, double b) { return std::fabs(a * b); });
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

// --- packed ---

// The tile in registers: kRows x kVectors vectors of sums, beside one row of b and one element of
// a. Level v4 has 32 registers, the others 16.
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
constexpr int kVectors = 2;
template <typename W>
constexpr std::int64_t kColumns =
    kVectors* std::int64_t{hwy::HWY_NAMESPACE::MaxLanes(simd::Tag<W>())};

// A strip of b, kDepth x kColumns, stays in the first cache while the strips of a block of a,
// kBlockRows x kDepth, pass it from the second. All of kBlockColumns of b stays in the last.
constexpr std::int64_t kDepth = 256;
constexpr std::int64_t kBlockRows = 32 * kRows;
constexpr std::int64_t kBlockColumns = 1024;
// What of a 16-bit c is kept as f32 until all of K is added.
constexpr std::int64_t kSlabRows = 4 * kBlockRows;

// Working memory of one thread, kept: fresh pages would cost as much as a small product.
template <typename W>
struct Workspace {
  struct Free {
    void operator()(W* p) const { std::free(p); }
  };
  using Array = std::unique_ptr<W, Free>;
  static Array Make(std::int64_t n) {
    return Array(static_cast<W*>(std::aligned_alloc(64, static_cast<std::size_t>(n) * sizeof(W))));
  }
  Array a = Make(kBlockRows * kDepth), b = Make(kBlockColumns * kDepth);
  Array slab;  // Made when a 16-bit product first needs it.
  bool ok() const { return a != nullptr && b != nullptr; }
};

// Strips of kStrip rows: out[strip][k][row], zeros where `rows` ends within a strip.
template <typename T, std::int64_t kStrip>
void Pack(const T* from, Strides strides, std::int64_t rows, std::int64_t depth, Wide<T>* out) {
  for (std::int64_t r = 0; r < rows; r += kStrip, out += kStrip * depth) {
    const T* strip = from + r * strides.row;
    const std::int64_t count = std::min(kStrip, rows - r);
    if (count < kStrip) std::fill(out, out + kStrip * depth, Wide<T>{0});
    if (count == kStrip && strides.row == 1) {
      for (std::int64_t k = 0; k < depth; ++k) {
        const T* line = strip + k * strides.column;
        for (std::int64_t i = 0; i < kStrip; ++i) out[k * kStrip + i] = Widen(line[i]);
      }
      continue;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const T* line = strip + i * strides.row;
      for (std::int64_t k = 0; k < depth; ++k)
        out[k * kStrip + i] = Widen(line[k * strides.column]);
    }
  }
}

// c[kRows][kColumns] (+)= strip of a times strip of b. `add`: onto what c holds.
template <typename W>
HWY_NOINLINE void MicroKernel(const W* a, const W* b, std::int64_t depth, W* c, std::int64_t stride,
                              bool add) {
  namespace hn = simd::hn;
  const simd::Tag<W> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(simd::Tag<W>()));
  hn::Vec<simd::Tag<W>> sums[kRows][kVectors];
  // What is needed last is asked for first: rows of c lie far apart.
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      hwy::Prefetch(c + i * stride + v * kLanes);
      sums[i][v] = hn::Zero(d);
    }
  }
  constexpr std::int64_t kSoon = 16 * kRows;
  for (std::int64_t k = 0; k < depth; ++k, a += kRows, b += kColumns<W>) {
    simd::PrefetchFrom(a, kSoon);  // Of this strip or the next, in the second cache.
    const auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + kLanes);
    // Unrolled by order, not by the compiler's judgement: or else the sums are not in registers.
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const auto left = hn::Set(d, a[i]);
      sums[i][0] = hn::MulAdd(left, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(left, b1, sums[i][1]);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      W* to = c + i * stride + v * kLanes;
      hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[i][v]) : sums[i][v], d, to);
    }
  }
}

// A tile that hangs over the edge of c goes through a buffer.
template <typename W>
void EdgeTile(const W* a, const W* b, std::int64_t depth, W* c, std::int64_t stride, bool add,
              std::int64_t rows, std::int64_t columns) {
  alignas(64) W tile[kRows * kColumns<W>];
  MicroKernel(a, b, depth, tile, kColumns<W>, false);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const W value = tile[i * kColumns<W> + j];
      c[i * stride + j] = add ? c[i * stride + j] + value : value;
    }
  }
}

template <typename W>
void BlockTimesBlock(const Workspace<W>& space, std::int64_t m, std::int64_t n, std::int64_t depth,
                     W* c, std::int64_t stride, bool add) {
  for (std::int64_t j = 0; j < n; j += kColumns<W>) {
    for (std::int64_t i = 0; i < m; i += kRows) {
      const W* a = space.a.get() + i * depth;
      const W* b = space.b.get() + j * depth;
      W* tile = c + i * stride + j;
      if (m - i >= kRows && n - j >= kColumns<W>) {
        MicroKernel(a, b, depth, tile, stride, add);
      } else {
        EdgeTile(a, b, depth, tile, stride, add, std::min<std::int64_t>(kRows, m - i),
                 std::min(kColumns<W>, n - j));
      }
    }
  }
}

// A part of one c: rows [i0, i1), columns [j0, j1).
struct Part {
  std::int64_t i0, i1, j0, j1;
};

// Rows of a part by a block of columns of b: c in wide elements at `c`, `stride` apart.
template <typename T>
void Columns(const T* a, const T* b, const Sizes& s, const Part& p, Wide<T>* c, std::int64_t stride,
             const Workspace<Wide<T>>& space) {
  using W = Wide<T>;
  for (std::int64_t k = 0; k < s.k; k += kDepth) {
    const std::int64_t depth = std::min(kDepth, s.k - k);
    // b by its columns: a strip has kColumns of them.
    Pack<T, kColumns<W>>(b + k * s.b.row + p.j0 * s.b.column, {s.b.column, s.b.row}, p.j1 - p.j0,
                         depth, space.b.get());
    for (std::int64_t i = p.i0; i < p.i1; i += kBlockRows) {
      const std::int64_t rows = std::min(kBlockRows, p.i1 - i);
      Pack<T, kRows>(a + i * s.a.row + k * s.a.column, s.a, rows, depth, space.a.get());
      BlockTimesBlock(space, rows, p.j1 - p.j0, depth, c + (i - p.i0) * stride, stride, k != 0);
    }
  }
}

template <typename T>
void RoundSlab(const Wide<T>* slab, std::int64_t stride, T* c, const Sizes& s, const Part& p) {
  for (std::int64_t i = p.i0; i < p.i1; ++i) {
    simd::ConvertRange<T>(slab + (i - p.i0) * stride, c + i * s.n + p.j0, p.j1 - p.j0);
  }
}

template <typename T>
absl::Status MultiplyPart(const T* a, const T* b, T* c, const Sizes& s, const Part& part) {
  using W = Wide<T>;
  thread_local Workspace<W> space;
  constexpr bool kDirect = std::is_same_v<T, W>;
  if (!kDirect && space.slab == nullptr) space.slab = Workspace<W>::Make(kSlabRows * kBlockColumns);
  if (!space.ok() || (!kDirect && space.slab == nullptr)) {
    return absl::ResourceExhaustedError("matmul: no memory for the packed blocks");
  }
  // Each slab packs b anew, so where c itself takes the sums there is one.
  const std::int64_t slab_rows = kDirect ? part.i1 - part.i0 : kSlabRows;
  for (std::int64_t i = part.i0; i < part.i1; i += slab_rows) {
    for (std::int64_t j = part.j0; j < part.j1; j += kBlockColumns) {
      const Part p{i, std::min(part.i1, i + slab_rows), j, std::min(part.j1, j + kBlockColumns)};
      if constexpr (kDirect) {
        Columns<T>(a, b, s, p, c + i * s.n + j, s.n, space);
      } else {
        Columns<T>(a, b, s, p, space.slab.get(), kBlockColumns, space);
        RoundSlab<T>(space.slab.get(), kBlockColumns, c, s, p);
      }
    }
  }
  return absl::OkStatus();
}

// How one c is cut between threads: a grid of parts that are as square as may be, because a thread
// packs the rows and the columns of its part anew.
struct Grid {
  std::int64_t rows = 1, columns = 1;
};

Grid ChooseGrid(const Sizes& s, std::int64_t parts) {
  Grid best{1, 1};
  double best_cost = std::numeric_limits<double>::infinity();
  for (std::int64_t rows = 1; rows <= parts; ++rows) {
    if (parts % rows != 0) continue;
    const Grid grid{rows, parts / rows};
    const double cost = static_cast<double>(s.m) / static_cast<double>(grid.rows) +
                        static_cast<double>(s.n) / static_cast<double>(grid.columns);
    if (cost < best_cost) {
      best = grid;
      best_cost = cost;
    }
  }
  return best;
}

// Part `index` of `count` of [0, n), cut at multiples of `unit`.
std::pair<std::int64_t, std::int64_t> Cut(std::int64_t n, std::int64_t unit, std::int64_t index,
                                          std::int64_t count) {
  const std::int64_t units = (n + unit - 1) / unit;
  return {std::min(n, units * index / count * unit),
          std::min(n, units * (index + 1) / count * unit)};
}

template <typename T>
absl::Status PackedMatmul(const Call& call, const Sizes& s) {
  constexpr double kWorthAThread = 64.0 * 64 * 64;
  const double work =
      static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const std::int64_t threads = call.threads->count();
  const bool small = work < 2 * kWorthAThread;
  const std::int64_t parts = small ? 1 : (threads + s.batch - 1) / s.batch;
  const Grid grid = ChooseGrid(s, parts);
  const auto grain = small ? static_cast<std::int64_t>(kWorthAThread / work) + 1 : 1;
  std::atomic<bool> failed{false};
  call.threads->ParallelFor(s.batch * parts, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t matrix = t / parts, part = t % parts;
      const auto [i0, i1] = Cut(s.m, kRows, part / grid.columns, grid.rows);
      const auto [j0, j1] = Cut(s.n, kColumns<Wide<T>>, part % grid.columns, grid.columns);
      const absl::Status status =
          MultiplyPart<T>(call.In<T>(0) + matrix * s.m * s.k, call.In<T>(1) + matrix * s.k * s.n,
                          call.Out<T>(0) + matrix * s.m * s.n, s, {i0, i1, j0, j1});
      if (!status.ok()) failed = true;
    }
  });
  if (failed) return absl::ResourceExhaustedError("matmul: no memory for the packed blocks");
  return absl::OkStatus();
}

absl::Status Packed(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    const std::int64_t outputs = s.batch * s.m * s.n;
    if (outputs == 0) return absl::OkStatus();
    if (s.k != 0) return PackedMatmul<T>(call, s);
    std::fill(call.Out<T>(0), call.Out<T>(0) + outputs, T{});  // The sum of nothing.
    return absl::OkStatus();
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
      .notes = "Accumulated in f32 (f64 for f64); f16 and bf16 results are rounded once.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude},
      .cpu = {{"naive", "One dot product for each element of c, one thread", Naive},
              {"tiled", "Blocks that fit the first cache, one thread", Tiled},
              {"packed", "Packed blocks, a tile of c in registers, every core", Packed}},
  };
}

#endif  // __CUDACC__
