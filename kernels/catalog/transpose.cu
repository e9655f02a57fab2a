// Transpose: two dimensions of a tensor change places. With what lies before, between and behind
// them, x is [outer, rows, middle, columns, inner] and y is [outer, columns, middle, rows, inner].
// Nothing is computed; what counts is that memory comes in lines: whoever reads along x writes
// across y.
//
//   naive     in the order of y: whole lines of x are fetched for one element each
//   blocked   tiles that stay in the first cache: each line of x is read once and each of y written
//             once, past the caches if there are many; on every core
//
// On a GPU; times are of 8192 x 8192 f32 on an H200 (docs/optimizing.md):
//   naive     800 us: one thread for each element of y: writes come together, reads do not
//   unpadded  354 us: a tile of 32 x 32 goes through shared memory, so that both do; but a column
//             of it lies in one bank, and 32 threads take turns
//   tiled     243 us: the rows of the tile are 33 long, so that a column lies in 32 banks
//   wide      131 us: tiles of 64 x 64 or more, 16 bytes at a time both ways; neighbouring tiles
//             run together, so that pieces of the rows of y meet in the cache

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/api/kernel.h"

namespace gridclock {
namespace {

struct View {
  std::int64_t outer = 1, rows = 1, middle = 1, columns = 1, inner = 1;
};

// The same with as little between as can be: where one of the two is 1, what lies between changes
// places with the other one; where nothing does, all of it is one run.
View Simplified(View view) {
  if (view.rows == 1) {
    std::swap(view.rows, view.middle);
  } else if (view.columns == 1) {
    std::swap(view.columns, view.middle);
  }
  if (view.middle != 1 || (view.rows != 1 && view.columns != 1)) return view;
  return {.inner = view.outer * view.rows * view.columns * view.inner};
}

View ViewOf(const Binding& binding) {
  const Shape& shape = binding.inputs[0].tensors[0].shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto place = [&](const char* name) {
    const std::int64_t at = binding.I64(name);
    return at < 0 ? at + rank : at;
  };
  const auto [first, second] = std::minmax({place("i"), place("j")});
  View view;
  if (first == second) {  // The same tensor.
    view.inner = Elements(shape);
    return view;
  }
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t size = shape[static_cast<std::size_t>(d)];
    if (d < first) view.outer *= size;
    if (d == first) view.rows = size;
    if (d > first && d < second) view.middle *= size;
    if (d == second) view.columns = size;
    if (d > second) view.inner *= size;
  }
  return Simplified(view);
}

}  // namespace
}  // namespace gridclock

#ifndef __CUDACC__  // The CPU.
#include <cstring>

#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  // From the indices of y, dimension by dimension.
  const Shape& to = binding.outputs[0].tensors[0].shape;
  const auto rank = static_cast<std::int64_t>(to.size());
  std::vector<std::int64_t> index(to.size());
  for (std::int64_t d = rank - 1; d >= 0; --d) {
    index[static_cast<std::size_t>(d)] = unit % to[static_cast<std::size_t>(d)];
    unit /= to[static_cast<std::size_t>(d)];
  }
  const auto at = [&](const char* name) -> std::int64_t& {
    return index[static_cast<std::size_t>((binding.I64(name) + rank) % rank)];
  };
  std::swap(at("i"), at("j"));
  const Shape& from = binding.inputs[0].tensors[0].shape;
  std::int64_t element = 0;
  for (std::size_t d = 0; d < from.size(); ++d) element = element * from[d] + index[d];
  result[0] = in(0, element);
}

absl::Status Naive(const Call& call) {
  const View v = ViewOf(*call.binding);
  const auto size = static_cast<std::size_t>(SizeOf(call.InType(0)));
  const char* x = call.In<char>(0);
  char* y = call.Out<char>(0);
  for (std::int64_t outer = 0; outer < v.outer; ++outer) {
    for (std::int64_t column = 0; column < v.columns; ++column) {
      for (std::int64_t middle = 0; middle < v.middle; ++middle) {
        for (std::int64_t row = 0; row < v.rows; ++row) {
          for (std::int64_t k = 0; k < v.inner; ++k, y += size) {
            const std::int64_t from =
                (((outer * v.rows + row) * v.middle + middle) * v.columns + column) * v.inner + k;
            std::memcpy(y, x + from * static_cast<std::int64_t>(size), size);
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

constexpr std::int64_t kEdge = 64;
// From one row of a tile that is turned to the next: they do not all want one place of the cache.
template <typename Raw>
constexpr std::int64_t kTurnedStride = kEdge + 64 / std::int64_t{sizeof(Raw)};

// A whole tile, four rows at a time: element by element it takes a quarter longer (8192 x 1024 f32
// on a Zen 3: 10.5 ms in place of 8.3).
template <typename Raw>
void Turn(const Raw* x, std::int64_t x_stride, Raw* turned) {
  namespace hn = simd::hn;
  const hn::ScalableTag<Raw> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<Raw>()));
  static_assert(kEdge % kLanes == 0);
  alignas(64) Raw four[4 * kEdge];
  for (std::int64_t r = 0; r < kEdge; r += 4) {
    for (std::int64_t c = 0; c < kEdge; c += kLanes) {
      const auto row = [&](std::int64_t k) { return hn::LoadU(d, x + (r + k) * x_stride + c); };
      hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, four + 4 * c);
    }
    for (std::int64_t c = 0; c < kEdge; ++c) {
      std::memcpy(turned + c * kTurnedStride<Raw> + r, four + 4 * c, 4 * sizeof(Raw));
    }
  }
}

// One tile through a buffer of its own: lines of x, which may all want one place of the cache where
// a row is a power of two long, are read whole and at once. With `stream` they go past the caches
// where they can: a line of y that is written whole need not be read before.
template <typename Raw>
void Tile(const Raw* x, std::int64_t x_stride, Raw* y, std::int64_t y_stride, std::int64_t rows,
          std::int64_t columns, bool stream) {
  alignas(64) Raw turned[kEdge * kTurnedStride<Raw>];
  if (rows == kEdge && columns == kEdge) {
    Turn(x, x_stride, turned);
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        turned[c * kTurnedStride<Raw> + r] = x[r * x_stride + c];
      }
    }
  }
  const std::int64_t bytes = rows * std::int64_t{sizeof(Raw)};
  for (std::int64_t c = 0; c < columns; ++c) {
    const auto* from = reinterpret_cast<const std::byte*>(turned + c * kTurnedStride<Raw>);
    auto* to = reinterpret_cast<std::byte*>(y + c * y_stride);
    if (stream && simd::MayStreamTo(to))
      simd::StreamBytes(from, to, bytes);
    else
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

template <typename Raw>
void Matrices(const Call& call, const View& v) {
  const std::int64_t down = (v.rows + kEdge - 1) / kEdge;
  const std::int64_t across = (v.columns + kEdge - 1) / kEdge;
  const std::int64_t x_stride = v.middle * v.columns, y_stride = v.middle * v.rows;
  const std::int64_t bytes = Elements(call.InShape(0)) * std::int64_t{sizeof(Raw)};
  const bool stream = bytes >= simd::kStreamBytes;
  constexpr std::int64_t kTilesOfTask = 8;
  // Tiles of one row of y after the other, as stores cost more than loads.
  call.threads->ParallelFor(
      v.outer * v.middle * across * down, kTilesOfTask, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
          const std::int64_t row = t % down * kEdge, column = t / down % across * kEdge;
          const std::int64_t matrix = t / (down * across);
          const std::int64_t outer = matrix / v.middle, middle = matrix % v.middle;
          Tile(call.In<Raw>(0) + (outer * v.rows + row) * x_stride + middle * v.columns + column,
               x_stride,
               call.Out<Raw>(0) + (outer * v.columns + column) * y_stride + middle * v.rows + row,
               y_stride, std::min(kEdge, v.rows - row), std::min(kEdge, v.columns - column),
               stream);
        }
        if (stream) hwy::FlushStream();
      });
}

// What stands behind both dimensions moves in one piece.
void Runs(const Call& call, const View& v, std::int64_t run) {
  const char* x = call.In<char>(0);
  char* y = call.Out<char>(0);
  const std::int64_t grain = 1 + (std::int64_t{64} << 10) / (run + 1);
  const std::int64_t runs = v.outer * v.columns * v.middle * v.rows;
  call.threads->ParallelFor(runs, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i % v.rows, middle = i / v.rows % v.middle;
      const std::int64_t column = i / (v.rows * v.middle) % v.columns;
      const std::int64_t outer = i / (v.rows * v.middle * v.columns);
      const std::int64_t from = ((outer * v.rows + row) * v.middle + middle) * v.columns + column;
      std::memcpy(y + i * run, x + from * run, static_cast<std::size_t>(run));
    }
  });
}

absl::Status Blocked(const Call& call) {
  if (Elements(call.InShape(0)) == 0) return absl::OkStatus();
  const View view = ViewOf(*call.binding);
  const std::int64_t run = view.inner * SizeOf(call.InType(0));
  if (view.inner > 1) {
    Runs(call, view, run);
  } else if (run == 1) {
    Matrices<std::uint8_t>(call, view);
  } else if (run == 2) {
    Matrices<std::uint16_t>(call, view);
  } else if (run == 4) {
    Matrices<std::uint32_t>(call, view);
  } else {
    Matrices<std::uint64_t>(call, view);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(transpose) {
  return {
      .words =
          "x: T[*A] -> y: T[*swap(A, i, j)]; i: i64 = -2 in [-8, 7], j: i64 = -1 in [-8, 7] "
          "flops 0",
      .summary = "Two dimensions change places",
      .formula = "y[.., q, .., p, ..] = x[.., p, .., q, ..], p at dimension i and q at j",
      .notes = "The bytes of each element, whatever they mean; of every dtype.",
      .reference = EachElement(Expected, Roundings::kNone),
      .cpu = {{"naive", "In the order of the output, one thread", Naive},
              {"blocked", "Tiles that stay in the first cache, on every core", Blocked}},
  };
}

#else  // The GPU.
#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"

namespace gridclock {
namespace {

// --- naive ---

template <typename Raw>
__global__ void NaiveKernel(const Raw* x, Raw* y, View v, std::int64_t n) {
  for (std::int64_t i = cuda::GridThread(); i < n; i += cuda::GridThreads()) {
    const std::int64_t k = i % v.inner, row = i / v.inner % v.rows;
    const std::int64_t middle = i / (v.inner * v.rows) % v.middle;
    const std::int64_t column = i / (v.inner * v.rows * v.middle) % v.columns;
    const std::int64_t outer = i / (v.inner * v.rows * v.middle * v.columns);
    y[i] = x[(((outer * v.rows + row) * v.middle + middle) * v.columns + column) * v.inner + k];
  }
}

template <typename Raw>
absl::Status LaunchNaive(const Call& call, const View& v) {
  constexpr std::int64_t kThreads = 256;
  const std::int64_t n = v.outer * v.rows * v.middle * v.columns * v.inner;
  return cuda::Launch(call, NaiveKernel<Raw>,
                      {.grid = {cuda::Blocks(n, kThreads)}, .block = {kThreads}}, call.In<Raw>(0),
                      call.Out<Raw>(0), v, n);
}

// body(raw) with `raw` of so many bytes.
template <typename Body>
absl::Status WithRaw(std::int64_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(std::uint8_t{});
    case 2:
      return body(std::uint16_t{});
    case 4:
      return body(std::uint32_t{});
    case 8:
      return body(std::uint64_t{});
    default:
      return body(uint4{});
  }
}

absl::Status Naive(const Call& call) {
  if (Elements(call.InShape(0)) == 0) return absl::OkStatus();
  const View view = ViewOf(*call.binding);
  return WithRaw(SizeOf(call.InType(0)),
                 [&](auto raw) { return LaunchNaive<decltype(raw)>(call, view); });
}

// --- tiled ---

// Which tile of which matrix. Tiles are numbered down strips of kStrip tiles, so that those that
// run together cover a piece of y as high as it is wide. No matrix has more than 32 bits of them.
struct Tiles {
  static constexpr unsigned kStrip = 8;
  unsigned down = 0, across = 0, strip = 0;
  std::int64_t count = 0;

  Tiles(const View& v, std::int64_t edge)
      : down(static_cast<unsigned>((v.rows + edge - 1) / edge)),
        across(static_cast<unsigned>((v.columns + edge - 1) / edge)),
        strip(std::min(kStrip, across)),
        count(v.outer * v.middle * down * across) {}
};

// A tile's place: its first element in x and in y, and how much of it there is. In 32 bits where
// they do: a division of 64 is a hundred instructions, as many as the rest of a thread's.
struct Place {
  std::int64_t from, to;
  int rows, columns;

  __device__ Place(const View& v, const Tiles& tiles, std::int64_t number, int edge) {
    const std::int64_t of_matrix = std::int64_t{tiles.down} * tiles.across;
    std::int64_t outer = 0, middle = 0;
    if (number >= of_matrix) {
      const std::int64_t matrix = number / of_matrix;
      number -= matrix * of_matrix;
      outer = matrix / v.middle;
      middle = matrix - outer * v.middle;
    }
    const auto in_matrix = static_cast<unsigned>(number);
    const unsigned of_strip = tiles.down * tiles.strip, strip = in_matrix / of_strip;
    const unsigned in_strip = in_matrix - strip * of_strip, left = strip * tiles.strip;
    const unsigned width = min(tiles.strip, tiles.across - left), down = in_strip / width;
    const std::int64_t row = std::int64_t{down} * edge;
    const std::int64_t column = std::int64_t{left + in_strip - down * width} * edge;
    from = ((outer * v.rows + row) * v.middle + middle) * v.columns + column;
    to = ((outer * v.columns + column) * v.middle + middle) * v.rows + row;
    rows = static_cast<int>(min(std::int64_t{edge}, v.rows - row));
    columns = static_cast<int>(min(std::int64_t{edge}, v.columns - column));
  }
};

constexpr int kTile = 32, kTileRows = 8;  // Rows that a block's threads cover at once.

// With a pad of 1 the elements of a column of the tile lie in different banks of shared memory,
// with 0 all in one.
template <typename Raw, int kPad>
__global__ void __launch_bounds__(kTile* kTileRows)
    TiledKernel(const Raw* x, Raw* y, View v, Tiles tiles) {
  __shared__ Raw tile[kTile][kTile + kPad];
  const int lane = static_cast<int>(threadIdx.x), first = static_cast<int>(threadIdx.y);
  for (std::int64_t number = blockIdx.x; number < tiles.count; number += gridDim.x) {
    const Place at(v, tiles, number, kTile);
    if (lane < at.columns) {
#pragma unroll
      for (int r = first; r < kTile; r += kTileRows) {
        if (r < at.rows) tile[r][lane] = x[at.from + r * v.middle * v.columns + lane];
      }
    }
    __syncthreads();
    if (lane < at.rows) {
#pragma unroll
      for (int c = first; c < kTile; c += kTileRows) {
        if (c < at.columns) y[at.to + c * v.middle * v.rows + lane] = tile[lane][c];
      }
    }
    __syncthreads();
  }
}

template <typename Raw, int kPad = 1>
absl::Status LaunchTiled(const Call& call, const View& v) {
  const Tiles tiles(v, kTile);
  return cuda::Launch(call, TiledKernel<Raw, kPad>,
                      {.grid = {cuda::Blocks(tiles.count, 1)}, .block = {kTile, kTileRows}},
                      call.In<Raw>(0), call.Out<Raw>(0), v, tiles);
}

// The most bytes of `run` that move as one, where tensors begin at any element.
std::int64_t MostBytes(const Call& call, std::int64_t run) {
  const auto begins = reinterpret_cast<std::uintptr_t>(call.In<char>(0)) |
                      reinterpret_cast<std::uintptr_t>(call.Out<char>(0));
  std::int64_t bytes = cuda::kPackBytes;
  while (run % bytes != 0 || static_cast<std::int64_t>(begins) % bytes != 0) bytes /= 2;
  return bytes;
}

// What stands behind both dimensions moves as one element, or as a run of them: then the tensor is
// copied run by run, and needs no tiles. kMatrix is called where it is one element.
template <typename Matrix>
absl::Status ByRuns(const Call& call, Matrix matrix) {
  if (Elements(call.InShape(0)) == 0) return absl::OkStatus();
  View view = ViewOf(*call.binding);
  const std::int64_t run = view.inner * SizeOf(call.InType(0));
  const std::int64_t bytes = MostBytes(call, run);
  view.inner = run / bytes;
  return WithRaw(bytes, [&](auto raw) {
    return view.inner == 1 ? matrix(raw, view) : LaunchNaive<decltype(raw)>(call, view);
  });
}

absl::Status Unpadded(const Call& call) {
  return ByRuns(call,
                [&](auto raw, const View& v) { return LaunchTiled<decltype(raw), 0>(call, v); });
}

absl::Status Tiled(const Call& call) {
  return ByRuns(call, [&](auto raw, const View& v) { return LaunchTiled<decltype(raw)>(call, v); });
}

// --- wide ---

template <typename Raw>
inline constexpr int kEdge = sizeof(Raw) == 1 ? 128 : 64;
constexpr int kWideThreads = 256;

// Rows of x are whole packs, and so are rows of y. In shared memory a row is one bank longer than
// the tile.
template <typename Raw>
__global__ void __launch_bounds__(kWideThreads)
    WideKernel(const Raw* x, Raw* y, View v, Tiles tiles) {
  using RawPack = cuda::Pack<Raw>;
  constexpr int kLanes = RawPack::kCount, kSide = kEdge<Raw>, kPacks = kSide / kLanes;
  constexpr int kEach = kSide * kPacks / kWideThreads;  // Packs of a thread.
  constexpr int kBank = sizeof(Raw) < 4 ? 4 / int{sizeof(Raw)} : 1;
  __shared__ Raw tile[kSide][kSide + kBank];
  for (std::int64_t number = blockIdx.x; number < tiles.count; number += gridDim.x) {
    const Place at(v, tiles, number, kSide);
    RawPack packs[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = static_cast<int>(threadIdx.x) + e * kWideThreads;
      const int row = i / kPacks, column = i % kPacks * kLanes;
      if (row < at.rows && column < at.columns) {
        packs[e] = cuda::LoadPack(x + at.from + row * v.middle * v.columns + column);
      }
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = static_cast<int>(threadIdx.x) + e * kWideThreads;
      const int row = i / kPacks, column = i % kPacks * kLanes;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) tile[row][column + lane] = packs[e].lane[lane];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const int i = static_cast<int>(threadIdx.x) + e * kWideThreads;
      const int column = i / kPacks, row = i % kPacks * kLanes;
      if (column >= at.columns || row >= at.rows) continue;
      RawPack out;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) out.lane[lane] = tile[row + lane][column];
      cuda::StorePack(y + at.to + column * v.middle * v.rows + row, out);
    }
    __syncthreads();
  }
}

template <typename Raw>
absl::Status LaunchWide(const Call& call, const View& v) {
  constexpr int kLanes = cuda::Pack<Raw>::kCount;
  const bool whole = v.rows % kLanes == 0 && v.columns % kLanes == 0 &&
                     cuda::AreAligned(call.In<Raw>(0), call.Out<Raw>(0));
  if (!whole) return LaunchTiled<Raw>(call, v);
  const Tiles tiles(v, kEdge<Raw>);
  return cuda::Launch(call, WideKernel<Raw>,
                      {.grid = {cuda::Blocks(tiles.count, 1)}, .block = {kWideThreads}},
                      call.In<Raw>(0), call.Out<Raw>(0), v, tiles);
}

absl::Status WideTiles(const Call& call) {
  return ByRuns(call, [&](auto raw, const View& v) {
    using Raw = decltype(raw);
    if constexpr (sizeof(Raw) == cuda::kPackBytes) {
      return LaunchTiled<Raw>(call, v);
    } else {
      return LaunchWide<Raw>(call, v);
    }
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(transpose) {
  return {{"naive", "One thread for each element: reads lie far apart", Naive},
          {"unpadded", "Tiles of 32 x 32 through shared memory, a column in one bank", Unpadded},
          {"tiled", "Tiles of 32 x 32 through shared memory, a column for each bank", Tiled},
          {"wide", "Tiles of 64 x 64 and more, 16 bytes at a time", WideTiles}};
}

#endif  // __CUDACC__
