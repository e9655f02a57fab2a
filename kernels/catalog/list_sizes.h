// How lists of tensors are cut into launches, for the kernels and for the tests that look at the
// edges.
#ifndef GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_
#define GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_

#include <cstdint>

namespace gridclock::list {

// Bytes that a launch's arguments may have: on every GPU, and from CUDA 12.1 and compute capability
// 7.0 on.
inline constexpr std::int64_t kFewArgBytes = 4096, kManyArgBytes = 32764;

// Of the bytes that a launch's arguments may have, those that do not tell of tensors.
inline constexpr std::int64_t kOtherArgumentBytes = 128;

// What a launch is told of one tensor: where it lies in each operand, its elements, its first
// block.
constexpr std::int64_t EntryBytes(std::int64_t operands) {
  return 8 * operands + 8 + 4;
}

// Tensors of a list that the arguments of one launch have room for.
constexpr std::int64_t TensorsOfALaunch(std::int64_t operands, std::int64_t arg_bytes) {
  return (arg_bytes - kOtherArgumentBytes) / EntryBytes(operands);
}

// The bytes of arguments of `auto`, which copies a table to the GPU where they have no room for the
// list. With more, an H200's own records of 150 to 900 tensors are 3 to 13 % shorter than with a
// table, but a launch then waits for its arguments before its record begins, and the methods of
// timing differ by more than they may (SUSPECT).
inline constexpr std::int64_t kArgBytesOfAuto = kFewArgBytes;

}  // namespace gridclock::list

#endif  // GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_
