#include "base/units.h"

#include <charconv>
#include <cmath>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gridclock {
namespace {

struct Unit {
  double size = 1;
  absl::string_view name;
};

// Three digits that tell something.
std::string Digits(double value) {
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return absl::StrFormat("%.*f", digits, value);
}

// The largest unit that leaves at least 1, from units in descending order.
std::string InUnits(double value, std::span<const Unit> units, absl::string_view after) {
  for (const Unit& unit : units) {
    if (value >= unit.size * 0.9995 || &unit == &units.back()) {
      return absl::StrCat(Digits(value / unit.size), " ", unit.name, after);
    }
  }
  return "-";
}

}  // namespace

std::string FormatNs(double ns) {
  static constexpr Unit kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}};
  return ns > 0 && std::isfinite(ns) ? InUnits(ns, kUnits, "") : "-";
}

std::string FormatRate(double per_second, absl::string_view unit) {
  static constexpr Unit kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};
  if (!(per_second > 0) || !std::isfinite(per_second)) return "-";
  return InUnits(per_second, kUnits, unit);
}

std::string FormatBytes(double bytes) {
  static constexpr Unit kUnits[] = {
      {1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}};
  if (bytes < 1024) return absl::StrFormat("%.0f B", bytes);
  return InUnits(bytes, kUnits, "");
}

std::string FormatPercent(double fraction) {
  return fraction > 0 ? absl::StrFormat("%.0f %%", fraction * 100) : "-";
}

std::string FormatPlain(double value) {
  constexpr double kReadable = 1e16;
  if (value == std::floor(value) && std::abs(value) < kReadable) {
    return absl::StrFormat("%.0f", value);
  }
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

}  // namespace gridclock
