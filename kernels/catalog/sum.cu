// Sum over one dimension: the input is [A, N, B], the output is [A, B].
//
//   naive      for each output, one term after the other: N roundings add up
//   pairwise   halves are summed apart and then added: log2(N) roundings, the same work
//   simd       many sums side by side, in vectors, on every core; joined in double
//
// On a GPU:
//   naive      one thread for each output
//   cub        the library that every CUDA programmer has; rows alone
//   two_pass   parts are summed by blocks, then their sums; the same bits on every GPU

#include "absl/strings/str_cat.h"
#include "kernels/api/kernel.h"
#include "kernels/catalog/sum_sizes.h"

#ifdef __CUDACC__
#include <algorithm>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "kernels/catalog/cuda_element.cuh"
#include "kernels/catalog/cuda_launch.cuh"
#include "kernels/catalog/sum_cuda.cuh"

namespace gridclock {
namespace {

using cuda::Narrow;
using cuda::Wide;
using cuda::Widen;
using sum::kThreads;
using sum::LaunchColumns;
using sum::LaunchRows;
using sum::Parts;
using sum::PartsOf;
using sum::Sizes;
using sum::SizesOf;
using sum::Tile;

// --- naive ---

template <typename Out, typename In>
__global__ void NaiveKernel(const In* x, Out* y, Sizes s) {
  const std::int64_t outputs = s.outer * s.inner;
  for (std::int64_t i = cuda::GridThread(); i < outputs; i += cuda::GridThreads()) {
    const In* p = x + i / s.inner * s.n * s.inner + i % s.inner;
    Wide<In> sum = 0;
    for (std::int64_t k = 0; k < s.n; ++k) sum += Widen(p[k * s.inner]);
    y[i] = Narrow<Out>(sum);
  }
}

template <typename T>
absl::Status LaunchNaive(const Call& call, const Sizes& s) {
  return cuda::Launch(call, NaiveKernel<T, T>,
                      {.grid = {cuda::Blocks(s.outer * s.inner, kThreads)}, .block = {kThreads}},
                      call.In<T>(0), call.Out<T>(0), s);
}

absl::Status Naive(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.inner == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0),
                         [&](auto element) { return LaunchNaive<decltype(element)>(call, s); });
}

// --- cub ---

// Sums wide whatever is read: the type of its result is the type that CUB keeps.
template <typename W>
struct Plus {
  __device__ W operator()(W a, W b) const { return a + b; }
};

struct RowBegin {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t row) const { return row * length; }
};

template <typename T>
cudaError_t CubSum(const Call& call, const Sizes& s, void* temp, std::size_t* bytes) {
  using W = Wide<T>;
  const auto stream = static_cast<cudaStream_t>(call.stream);
  if (s.outer == 1) {
    return cub::DeviceReduce::Reduce(temp, *bytes, call.In<T>(0), call.Out<T>(0), s.n, Plus<W>(),
                                     W{0}, stream);
  }
  const auto begins = thrust::make_transform_iterator(
      thrust::make_counting_iterator(std::int64_t{0}), RowBegin{s.n});
  return cub::DeviceSegmentedReduce::Reduce(temp, *bytes, call.In<T>(0), call.Out<T>(0), s.outer,
                                            begins, begins + 1, Plus<W>(), W{0}, stream);
}

absl::Status Cub(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer == 0) return absl::OkStatus();
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    std::size_t wanted = 0;
    GC_RETURN_IF_ERROR(cuda::ToStatus(CubSum<T>(call, s, nullptr, &wanted), "cub"));
    auto declared = static_cast<std::size_t>(Bytes(call.scratch[0].value->tensors[0]));
    if (wanted > declared) {
      return absl::InternalError(absl::StrCat(
          "sum.cub: CUB wants ", wanted, " bytes of scratch, the variant declares ", declared));
    }
    return cuda::ToStatus(CubSum<T>(call, s, call.scratch[0].data[0], &declared), "cub");
  });
}

// --- two_pass ---

template <typename T>
absl::Status SumRows(const Call& call, const Sizes& s) {
  constexpr std::int64_t kLeastTerms = 16384;
  const Parts parts = PartsOf(s.n, s.outer, kLeastTerms);
  if (parts.count == 1) {
    return LaunchRows(call, call.In<T>(0), call.Out<T>(0), s.outer, s.n, parts);
  }
  auto* sums = static_cast<Wide<T>*>(call.scratch[0].data[0]);
  GC_RETURN_IF_ERROR(LaunchRows(call, call.In<T>(0), sums, s.outer, s.n, parts));
  return LaunchRows(call, sums, call.Out<T>(0), s.outer, parts.count, {1, parts.count});
}

template <typename T>
absl::Status SumColumns(const Call& call, const Sizes& s) {
  const Tile tile(s.inner);
  constexpr std::int64_t kLeastRows = 32;  // Of a thread.
  const Parts parts = PartsOf(s.n, s.outer * tile.count, kLeastRows * tile.rows);
  if (parts.count == 1) return LaunchColumns(call, call.In<T>(0), call.Out<T>(0), s, parts);
  auto* sums = static_cast<Wide<T>*>(call.scratch[0].data[0]);
  GC_RETURN_IF_ERROR(LaunchColumns(call, call.In<T>(0), sums, s, parts));
  const Sizes rest{s.outer, parts.count, s.inner};
  return LaunchColumns(call, sums, call.Out<T>(0), rest, {1, parts.count});
}

absl::Status TwoPass(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  if (s.outer * s.inner == 0) return absl::OkStatus();
  // Below, a group of threads would mostly be idle.
  const std::int64_t few_terms = s.inner == 1 ? 8 : 32;
  return cuda::WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    if (s.n <= few_terms) return LaunchNaive<T>(call, s);
    return s.inner == 1 ? SumRows<T>(call, s) : SumColumns<T>(call, s);
  });
}

}  // namespace
}  // namespace gridclock

GC_CUDA_VARIANTS(sum) {
  return {{"naive", "One thread for each output, one term after the other", Naive},
          {"cub", "CUB's DeviceReduce and DeviceSegmentedReduce", Cub,
           "when numel(B) == 1 scratch temp: u8[1048576]"},
          {"two_pass",
           "Parts are summed by blocks, 16 bytes or a row of columns at a time; then their sums",
           TwoPass,
           "scratch sums: u8[min(numel(x), numel(B) == 1 ? 4096 : 1048576) * max(sizeof(T), 4)]"}};
}

#else  // The CPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock {
namespace {

using sum::Sizes;
using sum::SizesOf;

std::int64_t Terms(const Binding& binding) {
  return std::max<std::int64_t>(1, binding.Dim("N"));
}

// The element of x where the terms of output element `unit` begin; they lie `inner` apart.
std::int64_t FirstTerm(const Sizes& s, std::int64_t unit) {
  return unit / s.inner * s.n * s.inner + unit % s.inner;
}

void Expected(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
              std::span<double> result) {
  const Sizes s = SizesOf(binding);
  result[0] = 0;
  for (std::int64_t k = 0; k < s.n; ++k) result[0] += in(0, FirstTerm(s, unit) + k * s.inner);
}

void Magnitude(const Binding& binding, ReferenceInput in, std::int64_t unit, std::size_t,
               std::span<double> result) {
  const Sizes s = SizesOf(binding);
  result[0] = 0;
  for (std::int64_t k = 0; k < s.n; ++k) {
    result[0] += std::fabs(in(0, FirstTerm(s, unit) + k * s.inner));
  }
}

template <typename T>
Wide<T> SumInOrder(const T* x, std::int64_t n, std::int64_t stride) {
  Wide<T> sum = 0;
  for (std::int64_t k = 0; k < n; ++k) sum += Widen(x[k * stride]);
  return sum;
}

template <typename T>
Wide<T> SumPairwise(const T* x, std::int64_t n, std::int64_t stride) {
  constexpr std::int64_t kFew = 32;  // Below, the calls cost more than they save in roundings.
  if (n <= kFew) return SumInOrder(x, n, stride);
  return SumPairwise(x, n / 2, stride) + SumPairwise(x + n / 2 * stride, n - n / 2, stride);
}

// `sum` for each output element.
template <auto kSum, typename T>
void EachOutput(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  for (std::int64_t i = 0; i < s.outer * s.inner; ++i) {
    call.Out<T>(0)[i] = Narrow<T>(kSum(call.In<T>(0) + FirstTerm(s, i), s.n, s.inner));
  }
}

absl::Status Naive(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachOutput<&SumInOrder<T>, T>(call);
    return absl::OkStatus();
  });
}

absl::Status Pairwise(const Call& call) {
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    EachOutput<&SumPairwise<T>, T>(call);
    return absl::OkStatus();
  });
}

// Sums of n terms beside each other, B = 1, in kRanges ranges at a time: four vectors of sums for
// each. Memory gives more where it is read at two places far from each other than at one.
template <std::size_t kRanges, typename T>
std::array<double, kRanges> SumContiguous(std::array<const T*, kRanges> x, std::int64_t n) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<simd::Tag<T>> sums[kRanges][4];
  for (auto& of_range : sums) std::fill_n(of_range, 4, hn::Zero(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (std::size_t r = 0; r < kRanges; ++r) {
      for (int v = 0; v < 4; ++v) {
        sums[r][v] = hn::Add(sums[r][v], simd::Read<T>(d, x[r] + i + v * lanes));
      }
    }
  }
  std::array<double, kRanges> totals;
  for (std::size_t r = 0; r < kRanges; ++r) {
    auto& s = sums[r];
    std::int64_t k = i;
    for (; k + lanes <= n; k += lanes) s[0] = hn::Add(s[0], simd::Read<T>(d, x[r] + k));
    const auto rest = static_cast<std::size_t>(n - k);
    if (rest > 0) s[1] = hn::Add(s[1], simd::ReadPart<T>(d, x[r] + k, rest));
    totals[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s[0], s[1]), hn::Add(s[2], s[3]))));
  }
  return totals;
}

// sums[i] = that of the n terms at x + i * n, for i in [begin, end), from both halves at once.
template <typename T>
void SumRanges(const T* x, std::int64_t n, std::int64_t begin, std::int64_t end, double* sums) {
  const std::int64_t half = (end - begin) / 2;
  for (std::int64_t i = begin; i < begin + half; ++i) {
    const auto both = SumContiguous<2, T>({x + i * n, x + (i + half) * n}, n);
    sums[i] = both[0];
    sums[i + half] = both[1];
  }
  if (begin + 2 * half < end) sums[end - 1] = SumContiguous<1, T>({x + (end - 1) * n}, n)[0];
}

// Terms that are summed before their sum is added to others in double.
constexpr std::int64_t kChunk = 32768;

// One row of more, by all threads if there are any to take part.
template <typename T>
double SumLongRow(Threads* threads, const T* x, std::int64_t n) {
  const std::int64_t whole = n / kChunk;
  std::vector<double> chunks(static_cast<std::size_t>(whole));
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    SumRanges(x, kChunk, begin, end, chunks.data());
  };
  if (threads == nullptr) {
    some(0, whole);
  } else {
    threads->ParallelFor(whole, 1, some);
  }
  double sum = 0;
  for (const double chunk : chunks) sum += chunk;
  return sum + SumContiguous<1, T>({x + whole * kChunk}, n - whole * kChunk)[0];
}

template <typename T>
T Rounded(double sum) {
  if constexpr (std::is_same_v<T, F16>)
    return F16{F16FromDouble(sum)};
  else if constexpr (std::is_same_v<T, BF16>)
    return BF16{BF16FromDouble(sum)};
  else
    return static_cast<T>(sum);
}

template <typename T>
void SumLongRows(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const bool few = s.outer < call.threads->count();
  const auto rows = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t a = begin; a < end; ++a) {
      y[a] = Rounded<T>(SumLongRow(few ? call.threads : nullptr, x + a * s.n, s.n));
    }
  };
  if (few) return rows(0, s.outer);
  call.threads->ParallelFor(s.outer, 1, rows);
}

template <typename T>
void SumRows(const Call& call, const Sizes& s) {
  if (s.n > kChunk) return SumLongRows<T>(call, s);
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  const std::int64_t grain = 1 + kChunk / (s.n + 1);
  call.threads->ParallelFor(s.outer, grain, [&](std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kRows = 512;
    double sums[kRows];
    for (std::int64_t a = begin; a < end; a += kRows) {
      const std::int64_t rows = std::min(kRows, end - a);
      SumRanges(x + a * s.n, s.n, 0, rows, sums);
      for (std::int64_t row = 0; row < rows; ++row) y[a + row] = Rounded<T>(sums[row]);
    }
  });
}

// Columns that are summed together: their sums stay in the first cache, and each row of the input
// gives a page or so in one piece.
constexpr std::int64_t kColumns = 1024;

// sums[c] += the terms of columns [0, width) in `rows` rows that lie `stride` apart. One row at a
// time, as the hardware follows one stream better than several; but loads and stores of sums take
// the places of loads that memory could be busy with, so rows are asked for early.
template <typename T>
void AddRows(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
             Wide<T>* sums) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = width - width % lanes;
  const std::int64_t bytes = width * std::int64_t{sizeof(T)};
  const std::int64_t ahead = (simd::kAhead + bytes - 1) / bytes * stride;
  for (std::int64_t row = 0; row < rows; ++row, x += stride) {
    for (std::int64_t c = 0; c < whole; c += lanes) {
      simd::PrefetchFrom(x + c, ahead);
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), simd::Read<T>(d, x + c)), d, sums + c);
    }
    for (std::int64_t c = whole; c < width; ++c) sums[c] += Widen(x[c]);
  }
}

// Output row `a`, columns [first, first + width). Sums of kChunk terms are joined in double.
template <typename T>
void SumColumns(const T* x, T* y, const Sizes& s, std::int64_t a, std::int64_t first) {
  const std::int64_t width = std::min(kColumns, s.inner - first);
  double totals[kColumns];
  std::fill_n(totals, width, 0.0);
  for (std::int64_t k = 0; k < s.n; k += kChunk) {
    Wide<T> sums[kColumns];
    std::fill_n(sums, width, Wide<T>{0});
    AddRows(x + (a * s.n + k) * s.inner + first, std::min(kChunk, s.n - k), s.inner, width, sums);
    for (std::int64_t c = 0; c < width; ++c) totals[c] += sums[c];
  }
  for (std::int64_t c = 0; c < width; ++c) y[a * s.inner + first + c] = Rounded<T>(totals[c]);
}

// Few columns and many rows: chunks of rows go to the threads, and the sums of the chunks are added
// in their order. So many short rows as make kColumns are read as one row, and their columns
// joined.
struct TallPlan {
  std::int64_t fold, width, chunk_rows, chunks;
  explicit TallPlan(const Sizes& s) {
    constexpr std::int64_t kMostChunks = 64;
    fold = std::max<std::int64_t>(1, kColumns / s.inner);
    width = fold * s.inner;
    const std::int64_t wide_rows = std::max(kChunk / width, s.n / fold / kMostChunks);
    chunk_rows = fold * std::max<std::int64_t>(1, wide_rows);
    chunks = (s.n + chunk_rows - 1) / chunk_rows;
  }
};

// out[c] += the sums of the columns of `count` rows.
template <typename T>
void SumChunk(const T* rows, std::int64_t count, const Sizes& s, const TallPlan& plan,
              double* out) {
  const std::int64_t wide_rows = count / plan.fold;
  for (std::int64_t first = 0; first < plan.width; first += kColumns) {
    const std::int64_t width = std::min(kColumns, plan.width - first);
    Wide<T> sums[kColumns];
    std::fill_n(sums, width, Wide<T>{0});
    AddRows(rows + first, wide_rows, plan.width, width, sums);
    // The rows that do not make a wide one; where rows are folded, there is one block of columns.
    AddRows(rows + wide_rows * plan.width, count % plan.fold, s.inner, std::min(width, s.inner),
            sums);
    for (std::int64_t c = 0; c < width; ++c) out[(first + c) % s.inner] += sums[c];
  }
}

template <typename T>
void SumTall(Threads& threads, const T* x, T* y, const Sizes& s) {
  const TallPlan plan(s);
  std::vector<double> partial(static_cast<std::size_t>(plan.chunks * s.inner));
  threads.ParallelFor(plan.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t row = chunk * plan.chunk_rows;
      SumChunk(x + row * s.inner, std::min(plan.chunk_rows, s.n - row), s, plan,
               partial.data() + chunk * s.inner);
    }
  });
  threads.ParallelFor(s.inner, kColumns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = 1; chunk < plan.chunks; ++chunk) {
      const double* more = partial.data() + chunk * s.inner;
      for (std::int64_t c = begin; c < end; ++c) partial[static_cast<std::size_t>(c)] += more[c];
    }
    for (std::int64_t c = begin; c < end; ++c) {
      y[c] = Rounded<T>(partial[static_cast<std::size_t>(c)]);
    }
  });
}

template <typename T>
void SumAllColumns(const Call& call, const Sizes& s) {
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  constexpr std::int64_t kMostTallColumns = 16 * kColumns;  // Their partial sums take memory.
  const std::int64_t tiles = (s.inner + kColumns - 1) / kColumns;
  // Not by the number of threads: a sum has the same bits with any.
  constexpr std::int64_t kManyTasks = 32;
  const bool few_tasks = s.outer * tiles < kManyTasks || s.inner <= kColumns / 2;
  if (few_tasks && s.inner <= kMostTallColumns && s.n >= kColumns) {
    for (std::int64_t a = 0; a < s.outer; ++a) {
      SumTall(*call.threads, x + a * s.n * s.inner, y + a * s.inner, s);
    }
    return;
  }
  const std::int64_t grain = 1 + kChunk / (s.n * std::min(s.inner, kColumns) + 1);
  call.threads->ParallelFor(s.outer * tiles, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      SumColumns(x, y, s, t / tiles, t % tiles * kColumns);
    }
  });
}

absl::Status Simd(const Call& call) {
  const Sizes s = SizesOf(*call.binding);
  return WithFloat(call.InType(0), [&](auto element) {
    using T = decltype(element);
    if (s.inner == 1) {
      SumRows<T>(call, s);
    } else if (s.inner > 1) {
      SumAllColumns<T>(call, s);
    }
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace gridclock

GC_KERNEL(sum) {
  return {
      .words =
          "x: T[*A, N @ axis, *B] -> y: T[*A, *B]; axis: i64 = -1 "
          "where T in {f64, f32, f16, bf16} flops numel(x)",
      .summary = "The sum over one dimension",
      .formula = "y[a, b] = sum over k of x[a, k, b]",
      .notes =
          "Accumulated in f32 (f64 for f64), rounded once at the end; simd joins its parts in "
          "f64. The sum of nothing is 0.",
      .reference = {.units = OutputElements,
                    .unit_elements = One,
                    .compute = Expected,
                    .accumulation = Terms,
                    .magnitude = Magnitude},
      .cpu = {{"naive", "One term after the other: N roundings add up", Naive},
              {"pairwise", "Halves summed apart: log2(N) roundings", Pairwise},
              {"simd", "Many sums side by side, in vectors, on every core", Simd}},
  };
}

#endif  // __CUDACC__
