// Shapes of references that many kernels share.
#ifndef GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_
#define GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/api/kernel.h"

namespace gridclock {

// in(i, k): element k of input i.
using ReferenceInput = absl::FunctionRef<double(std::size_t input, std::int64_t element)>;

inline std::int64_t OutputElements(const Binding& binding) {
  return Elements(binding.outputs[0].tensors[0].shape);
}
inline std::int64_t One(const Binding&) {
  return 1;
}

// Each output element is a unit that rests on its own inputs alone.
inline Reference EachElement(decltype(Reference::compute) compute) {
  return {.units = OutputElements, .unit_elements = One, .compute = compute, .accumulation = One};
}

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_CATALOG_REFERENCE_H_
