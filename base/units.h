// Numbers for people.
#ifndef GRIDCLOCK_BASE_UNITS_H_
#define GRIDCLOCK_BASE_UNITS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gridclock {

// Three digits: "0.93 µs", "31.4 µs", "1.26 s". "-" for what is not known (0 or less).
std::string FormatNs(double ns);
// In powers of 1000: "24.1 GB/s", "1.3 TFLOP/s".
std::string FormatRate(double per_second, absl::string_view unit);
// In powers of 1024: "1.5 MiB".
std::string FormatBytes(double bytes);
std::string FormatPercent(double fraction);
// As many digits as tell it from every other number: "100000000", "600.0000001".
std::string FormatPlain(double value);

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_UNITS_H_
