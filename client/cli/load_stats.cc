#include "client/cli/load_stats.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/names.h"
#include "proto/types/quantile.h"

namespace gridclock::cli {

void LoadStats::Add(const absl::Status& status, absl::Duration latency) {
  ++answered_;
  if (status.ok()) {
    ok_ns_.push_back(absl::ToDoubleNanoseconds(latency));
    return;
  }
  const std::string reason = DetailsOf(status).reason;
  ++errors_[absl::StrCat(CodeName(status.code()), reason.empty() ? "" : " ", reason)];
}

std::optional<double> LoadStats::QuantileNs(double q) const {
  if (ok_ns_.empty()) return std::nullopt;
  std::vector<double> sorted = ok_ns_;
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

std::optional<double> LoadStats::P90Ns() const {
  return ok_ns_.size() < kSamplesForP90 ? std::nullopt : QuantileNs(0.9);
}

std::optional<double> LoadStats::P99Ns() const {
  return ok_ns_.size() < kSamplesForP99 ? std::nullopt : QuantileNs(0.99);
}

}  // namespace gridclock::cli
