// From how many samples on a quantile far out can be told.
#ifndef GRIDCLOCK_PROTO_TYPES_QUANTILE_H_
#define GRIDCLOCK_PROTO_TYPES_QUANTILE_H_

#include <cstddef>

namespace gridclock {

// Of fewer, the chance that none lies beyond the true quantile is more than 1 %: 0.9^44 and
// 0.99^459 are the first below it.
inline constexpr std::size_t kSamplesForP90 = 44;
inline constexpr std::size_t kSamplesForP99 = 459;

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_QUANTILE_H_
