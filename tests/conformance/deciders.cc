#include "tests/conformance/deciders.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "proto/types/convert.h"

namespace gridclock {
namespace {

constexpr double kMost = 6e4;  // About what f16 holds.

// Beside a tolerance of 1.6e-5 of the sum of magnitudes, and of 16 bits of 8e-3 of the sum.
double OfSum(double n) {
  return std::clamp(2e-4 * n, 16.0, kMost);
}
double OfLargest(double) {
  return 100;
}
// As much as the other exponentials together: of each that is exp(1/2) on average.
double OfExponentials(double n) {
  return 0.5 + std::log(n);
}
// Three times as much as the other squares together.
double OfSquares(double n) {
  return std::min(std::sqrt(3 * n), kMost);
}

struct Rule {
  absl::string_view kernel;
  double (*decider)(double n);
};
constexpr Rule kRules[] = {{"sum", OfSum},
                           {"mean", OfSum},
                           {"cumsum", OfSum},
                           {"max", OfLargest},
                           {"argmax", OfLargest},
                           {"softmax", OfExponentials},
                           {"log_softmax", OfExponentials},
                           {"layernorm", OfSquares},
                           {"rmsnorm", OfSquares}};

// How far the elements of a row lie apart.
std::int64_t BehindRow(const Binding& binding) {
  return binding.runs.size() == 2 ? Elements(binding.Run("B")) : 1;
}

}  // namespace

std::optional<double> DeciderOf(absl::string_view kernel, std::int64_t n) {
  const auto* const rule = std::find_if(std::begin(kRules), std::end(kRules),
                                        [&](const Rule& one) { return one.kernel == kernel; });
  if (rule == std::end(kRules)) return std::nullopt;
  return rule->decider(static_cast<double>(n));
}

void PutDeciders(const Binding& binding, std::span<std::byte> x) {
  const TensorSpec& tensor = binding.inputs[0].tensors[0];
  if (!DeciderOf(binding.spec->name, 1) || Elements(tensor.shape) == 0) return;
  const std::int64_t n = binding.Dim("N"), inner = BehindRow(binding);
  const double decider = *DeciderOf(binding.spec->name, n);
  const std::int64_t rows = Elements(tensor.shape) / n;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n - 1)));
  const std::int64_t before_border = std::max<std::int64_t>(power - 1, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t turn = (rows - 1 - row) % 3;
    if (turn == 2) continue;
    const std::int64_t place = turn == 0 ? n - 1 : before_border;
    StoreFromDouble(tensor.dtype, x.data(), (row / inner * n + place) * inner + row % inner,
                    decider);
  }
}

}  // namespace gridclock
