// How lists of tensors are cut into launches, for the kernels and for the tests that look at the
// edges.
#ifndef GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_
#define GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "absl/strings/string_view.h"

namespace gridclock::list {

// Bytes that a launch's arguments may have: on every GPU, and from CUDA 12.1 and compute capability
// 7.0 on.
inline constexpr std::int64_t kFewArgBytes = 4096, kManyArgBytes = 32764;

constexpr std::int64_t MostArgBytes(int driver_version, int capability_major) {
  return driver_version >= 12010 && capability_major >= 7 ? kManyArgBytes : kFewArgBytes;
}

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

// The most bytes of arguments that `auto` takes rather than copy a table to the GPU. With more, an
// H200's own records of 150 to 900 tensors are 3 to 13 % shorter than with a table, but a launch
// then waits for its arguments before its record begins, and the methods of timing differ by more
// than they may (SUSPECT).
inline constexpr std::pair<absl::string_view, std::int64_t> kMostArgBytesOfAuto[] = {
    {"foreach_add", kFewArgBytes}, {"foreach_mul", kFewArgBytes}, {"sgd", kFewArgBytes},
    {"adam", kFewArgBytes},        {"adamw", kFewArgBytes},
};
constexpr std::int64_t MostArgBytesOfAuto(absl::string_view kernel) {
  for (const auto& [name, most] : kMostArgBytesOfAuto) {
    if (name == kernel) return most;
  }
  return 0;
}

// The bytes of arguments of the one launch that takes so many tensors; 0 where none of at most
// `most` does.
constexpr std::int64_t ArgBytesOfOneLaunch(std::int64_t operands, std::int64_t count,
                                           std::int64_t most) {
  for (const std::int64_t bytes : {kFewArgBytes, kManyArgBytes}) {
    if (bytes <= most && count <= TensorsOfALaunch(operands, bytes)) return bytes;
  }
  return 0;
}

}  // namespace gridclock::list

#endif  // GRIDCLOCK_KERNELS_CATALOG_LIST_SIZES_H_
