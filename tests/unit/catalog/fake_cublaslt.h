#ifndef GRIDCLOCK_TESTS_UNIT_CATALOG_FAKE_CUBLASLT_H_
#define GRIDCLOCK_TESTS_UNIT_CATALOG_FAKE_CUBLASLT_H_

#include <cstdint>

namespace gridclock {

inline constexpr std::int64_t kNeverAdds = 3, kNeverMultiplies = 5, kSplits = 8, kWantsMemory = 9;

// What the fake library writes in place of a product.
struct Asked {
  std::int64_t algorithms = 0;  // So often so far.
  std::int64_t added = 0;       // 1: a bias, in the product.
  std::uint32_t schemes = 0;    // By which parts of a sum may be joined.
  std::uint64_t memory = 0;     // Of the algorithm that multiplied: what it was chosen for.
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_CATALOG_FAKE_CUBLASLT_H_
