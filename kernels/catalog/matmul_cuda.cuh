// Matrix products on GPUs, and what is summed like them. A block makes a tile of c: what it brings
// to shared memory once is used by a whole row or column of the tile. What a term adds (Term) and
// what becomes of a sum (Finish) are the kernel's own.
//
//   tiled            strips of a and b in shared memory, 4x4 sums in the registers of each thread:
//                    each number that is read from shared memory is used four times
//   register_tiled   8x8 sums (f32) in each thread, read 16 bytes at a time: a 16th of a load for
//                    each multiplication, so that shared memory no longer sets the pace. Strips
//                    arrive by asynchronous copies, three ahead of the one that is summed.
#ifndef GRIDCLOCK_KERNELS_CATALOG_MATMUL_CUDA_CUH_
#define GRIDCLOCK_KERNELS_CATALOG_MATMUL_CUDA_CUH_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/matmul_sizes.h"
#include "kernels/catalog/matmul_tiles.h"

namespace gridclock::matmul {

struct ProductTerm {
  static constexpr bool kFolded = false;
  template <typename W>
  static __device__ W Add(W sum, W a, W b) {
    return sum + a * b;
  }
};

// Row and Column: what a finish needs of row i and column j of a matrix, read once for a tile.
struct AsItIs {
  template <typename W>
  __device__ W Row(std::int64_t, std::int64_t) const {
    return 0;
  }
  template <typename W>
  __device__ W Column(std::int64_t, std::int64_t) const {
    return 0;
  }
  template <typename W>
  __device__ W operator()(W sum, W, W) const {
    return sum;
  }
};

inline Grid GridOf(const Sizes& s, std::int64_t tile) {
  return {s.batch, (s.m + tile - 1) / tile, (s.n + tile - 1) / tile};
}

// --- tiled ---

// A block brings strips of a and b, kDepth wide, into shared memory, where each element is used by
// kTile sums; each thread keeps kEach x kEach of the sums in registers.
inline constexpr int kThreads = 256;
inline constexpr int kTile = 64, kDepth = 16, kSide = 16, kEach = kTile / kSide;
static_assert(kSide * kSide == kThreads);

// strip[k][i] = element (first + i, k0 + k) of a matrix of `rows` rows; zeros beyond its edges.
// Threads that stand beside each other read what lies beside each other in memory.
template <typename T>
__device__ void LoadStrip(const T* matrix, Strides at, std::int64_t rows, std::int64_t depth,
                          std::int64_t first, std::int64_t k0,
                          cuda::Wide<T> (&strip)[kDepth][kTile + 1]) {
  const int thread = static_cast<int>(threadIdx.x);
  const bool along_depth = at.column == 1;
#pragma unroll
  for (int u = 0; u < kTile * kDepth / kThreads; ++u) {
    const int index = thread + u * kThreads;
    const int k = along_depth ? index % kDepth : index / kTile;
    const int i = along_depth ? index / kDepth : index % kTile;
    const bool inside = first + i < rows && k0 + k < depth;
    strip[k][i] = inside ? cuda::Widen(matrix[(first + i) * at.row + (k0 + k) * at.column])
                         : cuda::Wide<T>{0};
  }
}

template <class Term, typename T, typename Out, class Finish>
__global__ void __launch_bounds__(kThreads)
    TiledKernel(const T* a, const T* b, Out* c, Sizes s, Finish finish, Grid grid) {
  using W = cuda::Wide<T>;
  // One more column than is used, so that threads that write down a column meet other banks.
  __shared__ W left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kSide, y = static_cast<int>(threadIdx.x) / kSide;
  for (std::int64_t task = blockIdx.x; task < grid.tiles(); task += gridDim.x) {
    const auto [matrix, tile_row, tile_column] = PlaceOf(grid, task);
    const std::int64_t i0 = tile_row * kTile, j0 = tile_column * kTile;
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
            sums[i][j] = Term::Add(sums[i][j], left[k][y + i * kSide], right[k][x + j * kSide]);
          }
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const std::int64_t row = i0 + y + i * kSide, column = j0 + x + j * kSide;
        if (row >= s.m || column >= s.n) continue;
        const W finished = finish(sums[i][j], finish.template Row<W>(matrix, row),
                                  finish.template Column<W>(matrix, column));
        c[(matrix * s.m + row) * s.n + column] = cuda::Narrow<Out>(finished);
      }
    }
  }
}

// c may be wider than a and b.
template <class Term, typename T, typename Out, class Finish>
absl::Status TiledInto(const Call& call, const Sizes& s, const Finish& finish, const T* a,
                       const T* b, Out* c) {
  const Grid grid = GridOf(s, kTile);
  if (grid.tiles() == 0) return absl::OkStatus();
  return cuda::Launch(call, TiledKernel<Term, T, Out, Finish>,
                      {.grid = {cuda::Blocks(grid.tiles(), 1)}, .block = {kThreads}}, a, b, c, s,
                      finish, grid);
}

template <class Term, typename T, class Finish>
absl::Status Tiled(const Call& call, const Sizes& s, const Finish& finish) {
  return TiledInto<Term>(call, s, finish, call.In<T>(0), call.In<T>(1), call.Out<T>(0));
}

// --- register_tiled ---

// Of f32 a tile has 128 x 128 elements, and each thread 8 x 8 of its sums; of f64 half of both.
template <typename T>
struct Registers {
  static constexpr int kLanes = cuda::kPackBytes / int{sizeof(T)};
  static constexpr int kTile = 32 * kLanes;  // 16 x 16 threads, two packs each way.
  static constexpr int kEach = 2 * kLanes;
  static constexpr int kDepth = 8;
  static constexpr int kFoldedStrips = 4;
  static constexpr int kStages = 4;  // In shared memory: one is summed, three are on their way.
  // [k][i], so that a thread reads packs along i; a pack more than is used, so that threads that
  // write along k meet other banks.
  struct Strip {
    static constexpr int kStride = kTile + kLanes;
    T at[kDepth][kStride];
  };
  // Threads of a warp stand 4 x 8: a load of theirs touches no bank twice. Warps stand 4 x 2.
  static __device__ int FirstRow() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return warp / 2 * (8 * kLanes) + lane / 8 * kLanes;
  }
  static __device__ int FirstColumn() {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    return warp % 2 * (16 * kLanes) + lane % 8 * kLanes;
  }
  // Of element i or j of a thread's sums, from its first.
  static constexpr __device__ int RowOf(int i) { return i / kLanes * (4 * kLanes) + i % kLanes; }
  static constexpr __device__ int ColumnOf(int j) { return j / kLanes * (8 * kLanes) + j % kLanes; }
};

// Copies kBytes to shared memory, or zeros where it is not inside; asynchronously where the GPU
// can.
template <int kBytes>
__device__ inline void CopyAsync(void* shared, const void* global, bool inside) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = inside ? kBytes : 0;  // The rest of what is copied are zeros.
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(global), "r"(bytes),
                 "n"(kBytes)
                 : "memory");
  }
#else
  using Bytes = cuda::Pack<unsigned, kBytes / 4>;
  *static_cast<Bytes*>(shared) = inside ? *static_cast<const Bytes*>(global) : Bytes{};
#endif
}
__device__ inline void EndCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Until no more than kLeft of the groups that EndCopies ended are on their way.
template <int kLeft>
__device__ inline void WaitForCopies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#endif
}

// In which order a block reads an operand: one that is a row's in memory, element by element along
// the depth; one that is a column's along its rows, by elements or 16 bytes at a time.
enum class Order : std::uint8_t { kAlongDepth, kAlongRows, kPacksAlongRows };

// Brings the strips of one operand, each kDepth deeper than the last, with zeros beyond its edges.
// What depends on the order alone is known to the compiler: the addresses of each strip are else a
// fifth of all instructions.
template <typename T, Order kOrder>
class Bringer {
 public:
  using R = Registers<T>;
  using Strip = typename R::Strip;
  static constexpr bool kDeep = kOrder == Order::kAlongDepth;
  static constexpr int kLanes = kOrder == Order::kPacksAlongRows ? R::kLanes : 1;
  static constexpr int kInRow = R::kTile / kLanes;
  static constexpr int kTimes = R::kTile * R::kDepth / kLanes / kThreads;
  // From one element of a thread to the next.
  static constexpr int kNextI = kDeep ? kThreads / R::kDepth : 0;
  static constexpr int kNextK = kDeep ? 0 : kThreads / kInRow;

  // Rows from `first` on of a matrix of `rows` rows.
  __device__ Bringer(const T* matrix, Strides at, std::int64_t rows, std::int64_t depth,
                     std::int64_t first) {
    const int thread = static_cast<int>(threadIdx.x);
    k_ = kDeep ? thread % R::kDepth : thread / kInRow;
    i_ = kDeep ? thread / R::kDepth : thread % kInRow * kLanes;
    from_ = matrix + (first + i_) * at.row + k_ * at.column;
    next_ = kNextI * at.row + kNextK * at.column;
    const int last_depth = static_cast<int>((depth - 1) % R::kDepth) + 1;
    const std::int64_t rows_left = rows - first - i_;
    inside_ = inside_last_ = 0;
#pragma unroll
    for (int u = 0; u < kTimes; ++u) {
      if (u * kNextI >= rows_left) continue;
      inside_ |= 1U << u;
      if (k_ + u * kNextK < last_depth) inside_last_ |= 1U << u;
    }
  }

  // The next strip, asynchronously; `step` is how far one is from the next. `last`: there may be
  // less of it.
  __device__ void Bring(Strip& strip, std::int64_t step, bool last) {
    const unsigned inside = last ? inside_last_ : inside_;
    T* to = &strip.at[k_][i_];
    const T* from = from_;  // Where nothing is inside, nothing is read from it.
#pragma unroll
    for (int u = 0; u < kTimes; ++u, from += next_) {
      CopyAsync<kLanes* int{sizeof(T)}>(to + u * (kNextK * Strip::kStride + kNextI), from,
                                        (inside >> u & 1U) != 0);
    }
    from_ += step;
  }

 private:
  const T* from_;
  std::int64_t next_;
  int k_, i_;
  unsigned inside_, inside_last_;
};

template <class Term, typename T>
__device__ void AddStrips(const typename Registers<T>::Strip& left,
                          const typename Registers<T>::Strip& right, int row, int column,
                          T (&sums)[Registers<T>::kEach][Registers<T>::kEach]) {
  using R = Registers<T>;
  using Pack = cuda::Pack<T>;
#pragma unroll
  for (int k = 0; k < R::kDepth; ++k) {
    Pack a[2], b[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      a[half] = cuda::LoadPack(&left.at[k][row + half * 4 * R::kLanes]);
      b[half] = cuda::LoadPack(&right.at[k][column + half * 8 * R::kLanes]);
    }
#pragma unroll
    for (int i = 0; i < R::kEach; ++i) {
#pragma unroll
      for (int j = 0; j < R::kEach; ++j) {
        sums[i][j] = Term::Add(sums[i][j], a[i / R::kLanes].lane[i % R::kLanes],
                               b[j / R::kLanes].lane[j % R::kLanes]);
      }
    }
  }
}

// Writes the sums of a thread, finished. `packs`: 16 bytes at a time.
template <typename T, class Finish>
__device__ void StoreSums(T* c, const Sizes& s, const Finish& finish, std::int64_t matrix,
                          std::int64_t row, std::int64_t column, bool packs,
                          const T (&sums)[Registers<T>::kEach][Registers<T>::kEach]) {
  using R = Registers<T>;
  T of_column[R::kEach];
#pragma unroll
  for (int j = 0; j < R::kEach; ++j) {
    const std::int64_t at = column + R::ColumnOf(j);
    of_column[j] = at < s.n ? finish.template Column<T>(matrix, at) : T{0};
  }
#pragma unroll
  for (int i = 0; i < R::kEach; ++i) {
    const std::int64_t at = row + R::RowOf(i);
    if (at >= s.m) continue;
    const T of_row = finish.template Row<T>(matrix, at);
    T* to = c + (matrix * s.m + at) * s.n + column;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t from = half * 8 * R::kLanes;
      cuda::Pack<T> pack;
#pragma unroll
      for (int lane = 0; lane < R::kLanes; ++lane) {
        const int j = half * R::kLanes + lane;
        pack.lane[lane] = finish(sums[i][j], of_row, of_column[j]);
      }
      if (packs) {
        if (column + from < s.n) cuda::StorePack(to + from, pack);
        continue;
      }
#pragma unroll
      for (int lane = 0; lane < R::kLanes; ++lane) {
        if (column + from + lane < s.n) to[from + lane] = pack.lane[lane];
      }
    }
  }
}

// Adds `folded` to the sums, and begins it anew.
template <typename T, int kEach>
__device__ void Fold(T (&folded)[kEach][kEach], T (&sums)[kEach][kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) sums[i][j] += std::exchange(folded[i][j], T{0});
  }
}

// Two blocks on an SM: while one waits for its strips, the other computes. Terms that are folded
// are summed by kFoldedStrips strips, and those sums then: a chain of so many roundings is off by
// less. That takes twice the registers, and leaves room for one block.
template <class Term, typename T, class Finish, Order kOrderA, Order kOrderB>
__global__ void __launch_bounds__(kThreads, Term::kFolded ? 1 : 2)
    RegisterTiledKernel(const T* a, const T* b, T* c, Sizes s, Finish finish, Grid grid,
                        bool packs_c) {
  using R = Registers<T>;
  __shared__ __align__(16) typename R::Strip left[R::kStages], right[R::kStages];
  const int row = R::FirstRow(), column = R::FirstColumn();
  const int steps = static_cast<int>((s.k + R::kDepth - 1) / R::kDepth);
#pragma unroll 1
  for (std::int64_t task = blockIdx.x; task < grid.tiles(); task += gridDim.x) {
    const auto [matrix, tile_row, tile_column] = PlaceOf(grid, task);
    const std::int64_t i0 = tile_row * R::kTile, j0 = tile_column * R::kTile;
    Bringer<T, kOrderA> from_a(a + matrix * s.m * s.k, s.a, s.m, s.k, i0);
    Bringer<T, kOrderB> from_b(b + matrix * s.k * s.n, {s.b.column, s.b.row}, s.n, s.k, j0);
    const auto bring = [&](int step) {
      if (step < steps) {
        from_a.Bring(left[step % R::kStages], R::kDepth * s.a.column, step == steps - 1);
        from_b.Bring(right[step % R::kStages], R::kDepth * s.b.row, step == steps - 1);
      }
      EndCopies();  // Of nothing too, so that the count of those on their way is right.
    };
#pragma unroll
    for (int step = 0; step < R::kStages - 1; ++step) bring(step);
    T sums[R::kEach][R::kEach] = {}, folded[R::kEach][R::kEach] = {};
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      WaitForCopies<R::kStages - 2>();
      __syncthreads();  // All threads' copies are here, and the strip before is no longer read.
      bring(step + R::kStages - 1);
      AddStrips<Term>(left[step % R::kStages], right[step % R::kStages], row, column,
                      Term::kFolded ? folded : sums);
      if (Term::kFolded && step % R::kFoldedStrips == 0) Fold(folded, sums);
    }
    if constexpr (Term::kFolded) Fold(folded, sums);
    StoreSums(c, s, finish, matrix, i0 + row, j0 + column, packs_c, sums);
    __syncthreads();
  }
}

// Packs: where all rows along which an operand lies in order begin at one. `at`: of its rows, as a
// block sees them.
template <typename T>
Order OrderOf(const T* p, Strides at, const Sizes& s) {
  constexpr std::int64_t kLanes = Registers<T>::kLanes;
  if (at.column == 1) return Order::kAlongDepth;
  const bool aligned = cuda::AreAligned(p) && at.column % kLanes == 0 &&
                       (s.batch == 1 || s.k * at.column % kLanes == 0);
  return aligned ? Order::kPacksAlongRows : Order::kAlongRows;
}

// Calls body with the order as a type.
template <class Body>
absl::Status WithOrder(Order order, Body body) {
  if (order == Order::kAlongDepth) return body(std::integral_constant<Order, Order::kAlongDepth>());
  if (order == Order::kAlongRows) return body(std::integral_constant<Order, Order::kAlongRows>());
  return body(std::integral_constant<Order, Order::kPacksAlongRows>());
}

// For operands that lie in these orders.
template <class Term, typename T, Order kOrderA, Order kOrderB, class Finish>
absl::Status RegisterTiledIn(const Call& call, const Sizes& s, const Finish& finish) {
  using R = Registers<T>;
  const Grid grid = GridOf(s, R::kTile);
  if (grid.tiles() == 0) return absl::OkStatus();
  constexpr std::int64_t kMostDepth = (std::int64_t{1} << 31) * R::kDepth - R::kDepth;
  if (s.k > kMostDepth) {
    return absl::UnimplementedError(absl::StrCat("tiles in registers sum at most ", kMostDepth,
                                                 " terms, not ", s.k, "; variant 'naive' does"));
  }
  T* c = call.Out<T>(0);
  const bool packs_c = cuda::AreAligned(c) && s.n % R::kLanes == 0;
  return cuda::Launch(call, RegisterTiledKernel<Term, T, Finish, kOrderA, kOrderB>,
                      {.grid = {cuda::Blocks(grid.tiles(), 1)}, .block = {kThreads}}, call.In<T>(0),
                      call.In<T>(1), c, s, finish, grid, packs_c);
}

template <class Term, typename T, class Finish>
absl::Status RegisterTiled(const Call& call, const Sizes& s, const Finish& finish) {
  const Order of_b = OrderOf(call.In<T>(1), {s.b.column, s.b.row}, s);
  return WithOrder(OrderOf(call.In<T>(0), s.a, s), [&](auto order_a) {
    return WithOrder(of_b, [&](auto order_b) {
      return RegisterTiledIn<Term, T, order_a(), order_b()>(call, s, finish);
    });
  });
}

// Calls body with a value of the call's dtype, of those that register_tiled takes.
template <typename Body>
absl::Status WithRegisters(const Call& call, Body body) {
  if (call.InType(0) == DType::kF64) return body(double{});
  if (call.InType(0) == DType::kF32) return body(float{});
  return absl::InternalError(
      absl::StrCat(call.binding->spec->name, ": want f32 or f64, got ", Name(call.InType(0))));
}
inline constexpr const char* kRegisterTiledTakes = "when sizeof(T) >= 4";

}  // namespace gridclock::matmul

#endif  // GRIDCLOCK_KERNELS_CATALOG_MATMUL_CUDA_CUH_
