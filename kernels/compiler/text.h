// Text of a compiler on its way to a client.
#ifndef GRIDCLOCK_KERNELS_COMPILER_TEXT_H_
#define GRIDCLOCK_KERNELS_COMPILER_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gridclock {

// Valid UTF-8 without control characters but newline and tab: what else stands there becomes
// "\x1b".
std::string CleanText(absl::string_view text);

// At most `limit` bytes, whole characters, and a last line that says so if anything was cut.
std::string CutText(std::string text, std::size_t limit, bool* cut);

}  // namespace gridclock

#endif  // GRIDCLOCK_KERNELS_COMPILER_TEXT_H_
