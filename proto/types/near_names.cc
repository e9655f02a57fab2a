#include "proto/types/near_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

constexpr std::size_t kNearest = 3;
// A client chooses both sides: what is compared is bounded, and nobody mistypes longer names.
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kMostCompared = 256;

// Levenshtein's distance: how many letters to add, drop or change.
std::size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestNames(absl::string_view wanted, const std::vector<absl::string_view>& names) {
  const std::size_t most = std::max<std::size_t>(1, wanted.size() / 3);  // Beyond it is no typo.
  std::vector<std::pair<std::size_t, absl::string_view>> near;
  if (wanted.size() > kLongestName) return "";
  std::size_t compared = 0;
  for (const absl::string_view name : names) {
    const std::size_t longer = std::max(name.size(), wanted.size());
    if (longer - std::min(name.size(), wanted.size()) > most) continue;
    if (++compared > kMostCompared) break;
    const std::size_t distance = EditDistance(wanted, name);
    if (distance <= most) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), kNearest));
  return absl::StrJoin(near, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, Quote(entry.second));
  });
}

bool IsOfAService(absl::string_view name) {
  return absl::EndsWith(name, "_PORT") || absl::StrContains(name, "_PORT_") ||
         absl::StrContains(name, "_SERVICE_HOST") || absl::StrContains(name, "_SERVICE_PORT");
}

}  // namespace gridclock
