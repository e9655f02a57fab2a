// Kernels from rows to rows on a CPU (softmax, log_softmax, layernorm, rmsnorm): rows go to the
// threads; few long rows are cut between them.
//
// What a kernel makes of a row is its Op:
//
//   State                     what is known of a part of a row; State{} of none
//   Part(x, n)                the state of up to kPart elements
//   Join(a, b)                the state of both parts
//   Write(x, y, begin, end, state, stream)   the results in [begin, end) of a row
//   Short(x, y, n, stream)    a whole row at once, if it is one that this is for; else false
#ifndef GRIDCLOCK_KERNELS_CATALOG_ROWS_SIMD_H_
#define GRIDCLOCK_KERNELS_CATALOG_ROWS_SIMD_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/catalog/element.h"
#include "kernels/catalog/reference.h"
#include "kernels/catalog/simd.h"

namespace gridclock::rows {

inline std::int64_t LengthOf(const Binding& binding) {
  return binding.Dim("N");
}

inline std::int64_t CountOf(const Binding& binding) {
  const std::int64_t n = LengthOf(binding);
  return n == 0 ? 0 : Elements(binding.inputs[0].tensors[0].shape) / n;
}

// Of the type that is computed in. What is smaller is rounded as coarsely as this is: a part of the
// magnitude wherever a weight makes it large again.
inline double LeastNormal(const Binding& binding) {
  return binding.inputs[0].tensors[0].dtype == DType::kF64
             ? std::numeric_limits<double>::min()
             : double{std::numeric_limits<float>::min()};
}

// Of the type that is computed in: twice what one rounding is off by.
inline double Epsilon(const Binding& binding) {
  return binding.inputs[0].tensors[0].dtype == DType::kF64
             ? std::numeric_limits<double>::epsilon()
             : double{std::numeric_limits<float>::epsilon()};
}

// The reference of a kernel whose unit is a row.
inline Reference EachRow(decltype(Reference::compute) compute,
                         decltype(Reference::magnitude) magnitude,
                         decltype(Reference::reach) reach = nullptr,
                         decltype(Reference::unsettled) unsettled = nullptr) {
  return {.units = CountOf,
          .unit_elements = LengthOf,
          .compute = compute,
          .accumulation = LengthOf,
          .magnitude = magnitude,
          .reach = reach,
          .unsettled = unsettled,
          .unit_terms = LengthOf};
}

// row(x, y, n) on every row, one after the other.
template <typename T, class Row>
void OneByOne(const Call& call, Row row) {
  const std::int64_t n = LengthOf(*call.binding);
  for (std::int64_t r = 0; r < CountOf(*call.binding); ++r) {
    row(call.In<T>(0) + r * n, call.Out<T>(0) + r * n, n);
  }
}

// The sum of term(v) over the vectors v of n elements.
template <typename T, class Term>
double SumOf(const T* x, std::int64_t n, Term term) {
  namespace hn = simd::hn;
  const simd::Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<simd::Tag<T>> sums[4];
  std::fill_n(sums, 4, hn::Zero(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (int v = 0; v < 4; ++v) {
      sums[v] = hn::Add(sums[v], term(simd::Read<T>(d, x + i + v * lanes)));
    }
  }
  for (; i + lanes <= n; i += lanes) sums[0] = hn::Add(sums[0], term(simd::Read<T>(d, x + i)));
  const auto rest = static_cast<std::size_t>(n - i);
  if (rest > 0) {
    const auto last = term(simd::ReadPart<T>(d, x + i, rest));
    sums[1] = hn::Add(sums[1], hn::IfThenElseZero(hn::FirstN(d, rest), last));
  }
  return hn::GetLane(
      hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

// What one thread takes of a row.
constexpr std::int64_t kPart = 16384;

// Joined by parts as SplitRow does, so that the result does not depend on the number of threads.
template <typename T, class Op>
void WholeRow(const Op& op, const T* x, T* y, std::int64_t n, bool stream) {
  if (op.Short(x, y, n, stream)) return;
  typename Op::State s = {};
  for (std::int64_t i = 0; i < n; i += kPart) {
    s = op.Join(s, op.Part(x + i, std::min(kPart, n - i)));
  }
  op.Write(x, y, 0, n, s, stream);
}

// One row on all threads: each makes the states of its parts, which are joined in their order.
template <typename T, class Op>
void SplitRow(Threads& threads, const Op& op, const T* x, T* y, std::int64_t n, bool stream) {
  std::vector<typename Op::State> parts(static_cast<std::size_t>((n + kPart - 1) / kPart));
  threads.ParallelFor(n, kPart, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kPart) {
      parts[static_cast<std::size_t>(i / kPart)] = op.Part(x + i, std::min(kPart, end - i));
    }
  });
  typename Op::State s = {};
  for (const auto& part : parts) s = op.Join(s, part);
  threads.ParallelFor(n, kPart, [&](std::int64_t begin, std::int64_t end) {
    op.Write(x, y, begin, end, s, stream);
    if (stream) hwy::FlushStream();
  });
}

template <typename T, class Op>
void Simd(const Call& call, const Op& op) {
  const std::int64_t n = LengthOf(*call.binding), rows = CountOf(*call.binding);
  const T* x = call.In<T>(0);
  T* y = call.Out<T>(0);
  constexpr std::int64_t kShort = 256;  // Rows that are mostly edges gain nothing.
  const bool stream = x != y && n >= kShort && simd::WorthStreaming<T>(n * rows);
  if (rows < call.threads->count() && n >= 2 * simd::kGrain) {
    for (std::int64_t r = 0; r < rows; ++r) {
      SplitRow(*call.threads, op, x + r * n, y + r * n, n, stream);
    }
    return;
  }
  const std::int64_t grain =
      std::max<std::int64_t>(1, simd::kGrain / 4 / std::max<std::int64_t>(n, 1));
  call.threads->ParallelFor(rows, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) WholeRow(op, x + r * n, y + r * n, n, stream);
    if (stream) hwy::FlushStream();
  });
}

}  // namespace gridclock::rows

#endif  // GRIDCLOCK_KERNELS_CATALOG_ROWS_SIMD_H_
