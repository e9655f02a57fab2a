// How far two tensors of the same shape are apart.
#ifndef GRIDCLOCK_CLIENT_CLI_COMPARE_H_
#define GRIDCLOCK_CLIENT_CLI_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/types/tensor.h"

namespace gridclock::cli {

struct Difference {
  std::int64_t values = 0;
  std::int64_t mismatches = 0;      // Beyond the tolerance, or a NaN on one side alone.
  std::int64_t nan_mismatches = 0;  // Of those.
  double max_abs = 0, max_rel = 0;  // Of finite values.
  std::uint64_t max_ulp = 0;        // Steps between neighbouring values of the dtype; integers: 0.
  std::vector<std::string> first;   // "[3,4]: want 1.25, got 1.5"; at most five.

  void Add(const Difference& other);
};

// The relative tolerance of a dtype; 0 for integers, which must be equal.
double ToleranceOf(DType dtype);

// `got` may differ from `want` by tolerance times the larger of |want| and the median magnitude of
// the wanted values along the last dimension: what is small among large values was computed from
// them, and one spike excuses nothing. Infinities are equal to themselves alone, and a NaN is
// wanted where there is one.
Difference Compare(const TensorSpec& spec, std::span<const std::byte> got,
                   std::span<const std::byte> want, double tolerance);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_COMPARE_H_
