// What the benchmarked kernels must give, so that a wrong result is not the fastest: plain loops in
// double, for a sample of the elements.
#ifndef GRIDCLOCK_TESTS_BENCH_KERNELS_EXPECTED_H_
#define GRIDCLOCK_TESTS_BENCH_KERNELS_EXPECTED_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gridclock {

struct Expected {
  std::int64_t outputs = 0;
  std::function<double(std::int64_t)> want;  // Of output i.
  double absolute = 1e-6;                    // Allowed beside 1e-5 of the wanted value.
};

// Of sums of many terms of either sign.
inline double AllowedOfSum(std::int64_t terms) {
  return 1e-4 * std::sqrt(static_cast<double>(terms));
}

template <typename F>
Expected EachOf(std::int64_t n, F want) {
  return {.outputs = n, .want = want};
}

inline double GeluTanh(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
inline double GeluErf(double x) {
  return 0.5 * x * (1 + std::erf(x * 0.7071067811865476));
}

// y[i] = sum of x[i * next + t * step] over `terms` values of t.
inline Expected Sums(const float* x, std::int64_t outputs, std::int64_t next, std::int64_t terms,
                     std::int64_t step) {
  const auto want = [=](std::int64_t i) {
    double sum = 0;
    for (std::int64_t t = 0; t < terms; ++t) sum += x[i * next + t * step];
    return sum;
  };
  return {.outputs = outputs, .want = want, .absolute = AllowedOfSum(terms)};
}
inline Expected ColumnSums(const float* x, std::int64_t rows, std::int64_t columns) {
  return Sums(x, columns, 1, rows, columns);
}
inline Expected RowSums(const float* x, std::int64_t rows, std::int64_t columns) {
  return Sums(x, rows, columns, columns, 1);
}

inline Expected RowSoftmax(const float* x, std::int64_t rows, std::int64_t columns) {
  const auto want = [=](std::int64_t i) {
    const float* row = x + i / columns * columns;
    const double largest = *std::max_element(row, row + columns);
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(row[j] - largest);
    return std::exp(row[i % columns] - largest) / sum;
  };
  return {.outputs = rows * columns, .want = want, .absolute = 0};
}

// INTERNAL that names the first element that is wrong, of up to 101 from the first to the last.
inline absl::Status CheckSample(const std::string& name, const Expected& expected,
                                const float* got) {
  const std::int64_t steps = std::min<std::int64_t>(100, expected.outputs - 1);
  for (std::int64_t step = 0; step <= steps; ++step) {
    const std::int64_t i = steps == 0 ? 0 : (expected.outputs - 1) * step / steps;
    const double want = expected.want(i);
    // Not so for NaN either.
    if (std::abs(got[i] - want) <= expected.absolute + 1e-5 * std::abs(want)) continue;
    return absl::InternalError(
        absl::StrCat(name, ": element ", i, ": want ", want, ", got ", got[i]));
  }
  return absl::OkStatus();
}

// INTERNAL that names the first element that is off by more than `allowed`.
inline absl::Status CheckSame(const std::string& name, std::span<const float> wanted,
                              const float* got, double allowed) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (std::abs(double{got[i]} - wanted[i]) <= allowed) continue;  // Not so for NaN either.
    return absl::InternalError(
        absl::StrCat(name, ": element ", i, ": want ", wanted[i], ", got ", got[i]));
  }
  return absl::OkStatus();
}

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_BENCH_KERNELS_EXPECTED_H_
