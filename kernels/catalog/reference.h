// Shapes of references that many kernels share.
#ifndef GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/api/kernel.h"

namespace gridclock {

// in(i, k): element k of input i.
using ReferenceInput = absl::FunctionRef<double(std::size_t input, std::int64_t element)>;

// The elements along one dimension of a tensor that lies row by row.
struct Line {
  std::int64_t first = 0, step = 0, length = 0;
  std::int64_t at(std::int64_t k) const { return first + k * step; }
};

// The line along dimension `axis` of `shape` at place `unit` of its other dimensions, row by row.
inline Line LineOf(const Shape& shape, std::size_t axis, std::int64_t unit) {
  Line line;
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
    if (d == axis) {
      line.step = stride;
      line.length = shape[d];
    } else {
      line.first += unit % shape[d] * stride;
      unit /= shape[d];
    }
  }
  return line;
}

// What references keep sums in. One of f64 that is kept in order in f64 has the roundings of a
// naive variant, which would be right by it and all better ones wrong. Terms that are not finite
// stay outside: the x87 unit takes thirty times as long for each operation on them.
class ReferenceSum {
  static_assert(std::numeric_limits<long double>::digits >= 64);

 public:
  ReferenceSum& operator+=(double term) {
    if (std::isfinite(term)) {
      finite_ += term;
    } else {
      rest_ += term;
    }
    return *this;
  }
  explicit operator double() const { return Over(1); }
  [[nodiscard]] double Over(double count) const {
    return rest_ == 0 ? static_cast<double>(finite_ / count) : rest_ / count;
  }

 private:
  long double finite_ = 0;
  double rest_ = 0;
};

inline std::int64_t OutputElements(const Binding& binding) {
  return Elements(binding.outputs[0].tensors[0].shape);
}
inline std::int64_t One(const Binding&) {
  return 1;
}

// Of a list all tensors' elements, one behind another.
inline std::int64_t OutputListElements(const Binding& binding) {
  std::int64_t elements = 0;
  for (const TensorSpec& tensor : binding.outputs[0].tensors) elements += Elements(tensor.shape);
  return elements;
}

// Each output element is a unit that rests on its own inputs alone.
inline Reference EachElement(decltype(Reference::compute) compute,
                             Roundings roundings = Roundings::kSeveral) {
  return {.units = OutputElements,
          .unit_elements = One,
          .compute = compute,
          .accumulation = One,
          .roundings = roundings};
}

// The same for lists; `in` counts elements through a list too.
inline Reference EachListElement(decltype(Reference::compute) compute,
                                 decltype(Reference::accumulation) accumulation,
                                 decltype(Reference::magnitude) magnitude = nullptr,
                                 decltype(Reference::reach) reach = nullptr,
                                 Roundings roundings = Roundings::kSeveral) {
  return {.units = OutputListElements,
          .unit_elements = One,
          .compute = compute,
          .accumulation = accumulation,
          .magnitude = magnitude,
          .reach = reach,
          .roundings = roundings};
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_
