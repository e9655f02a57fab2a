// Elements that decide what a long row comes to: among normal numbers one is so large that a kernel
// which leaves it out is wrong by more than the tolerance, and so small that it is not all of the
// result.
#ifndef GRIDCLOCK_TESTS_CONFORMANCE_DECIDERS_H_
#define GRIDCLOCK_TESTS_CONFORMANCE_DECIDERS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/string_view.h"
#include "proto/types/binding.h"

namespace gridclock {

// Of a row of n elements; nothing for kernels that make nothing of a row.
std::optional<double> DeciderOf(absl::string_view kernel, std::int64_t n);

// Into input 0: by turns, from the last row on, the last element of a row; the one before the
// border of a part, whose length is a power of two; and none, so that the others count.
void PutDeciders(const Binding& binding, std::span<std::byte> x);

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_CONFORMANCE_DECIDERS_H_
