// Element-wise kernels over lists of tensors on the CPU.
#ifndef GRIDCLOCK_KERNELS_CATALOG_LIST_CPU_H_
#define GRIDCLOCK_KERNELS_CATALOG_LIST_CPU_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/catalog/simd.h"

namespace gridclock::list {

// body(tensor, begin, end) for elements [begin, end) of a tensor, which cover the list. The list is
// cut among the threads as one run of elements, wherever that falls: small tensors share a thread,
// a large one has all.
template <typename Body>
void EachPiece(Threads& threads, const OperandValue& list, Body body) {
  std::vector<std::int64_t> ends;
  std::int64_t total = 0;
  for (const TensorSpec& tensor : list.tensors) {
    ends.push_back(total += Elements(tensor.shape));
  }
  threads.ParallelFor(total, simd::kGrain, [&](std::int64_t begin, std::int64_t end) {
    auto tensor =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (; begin < end; ++tensor) {
      const std::int64_t first = tensor == 0 ? 0 : ends[tensor - 1];
      const std::int64_t stop = std::min(end, ends[tensor]);
      if (begin < stop) body(tensor, begin - first, stop - first);
      begin = stop;
    }
  });
}

// c = op(d, a, b) of each element of the lists, in vectors. c may be a.
template <typename T, class Op>
void MapLists(const Call& call, Op op) {
  const OperandView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  std::int64_t bytes = 0;
  for (const TensorSpec& tensor : c.value->tensors) bytes += Bytes(tensor);
  const bool stream = a.data != c.data && simd::WorthStreaming<T>(bytes / std::int64_t{sizeof(T)});
  EachPiece(*call.threads, *c.value, [&](std::size_t t, std::int64_t begin, std::int64_t end) {
    simd::MapRange<T>(op, static_cast<T*>(c.data[t]), begin, end, stream,
                      static_cast<const T*>(a.data[t]), static_cast<const T*>(b.data[t]));
    if (stream) hwy::FlushStream();
  });
}

// op(d, x) of each element of the lists of f32 in `columns`, in vectors; op changes x, and those of
// the columns in the mask are written.
template <unsigned kWrites, std::size_t kColumns, class Op>
void UpdateLists(const Call& call, const std::array<const OperandView*, kColumns>& columns, Op op) {
  namespace hn = simd::hn;
  using V = hn::Vec<simd::Tag<float>>;
  const simd::Tag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  EachPiece(*call.threads, *columns[0]->value,
            [&](std::size_t t, std::int64_t begin, std::int64_t end) {
              std::array<float*, kColumns> p;  // Of its own: stores of vectors may alias others.
              for (std::size_t k = 0; k < kColumns; ++k) {
                p[k] = static_cast<float*>(columns[k]->data[t]);
              }
              V x[kColumns];
              for (; begin + lanes <= end; begin += lanes) {
                for (std::size_t k = 0; k < kColumns; ++k) x[k] = hn::LoadU(d, p[k] + begin);
                op(d, x);
                for (std::size_t k = 0; k < kColumns; ++k) {
                  if ((kWrites >> k & 1) != 0) hn::StoreU(x[k], d, p[k] + begin);
                }
              }
              const auto rest = static_cast<std::size_t>(end - begin);
              if (rest == 0) return;
              for (std::size_t k = 0; k < kColumns; ++k) {
                x[k] = simd::ReadPart<float>(d, p[k] + begin, rest);
              }
              op(d, x);
              for (std::size_t k = 0; k < kColumns; ++k) {
                if ((kWrites >> k & 1) != 0) simd::WritePart<float>(x[k], d, p[k] + begin, rest);
              }
            });
}

}  // namespace gridclock::list

#endif  // GRIDCLOCK_KERNELS_CATALOG_LIST_CPU_H_
