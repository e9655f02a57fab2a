// Text that clients' code made, a compiler's or its own, on its way to a client.
#ifndef GRIDCLOCK_BASE_TEXT_H_
#define GRIDCLOCK_BASE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace gridclock {

bool IsUtf8(absl::string_view text);

// Valid UTF-8 without control characters but newline and tab: what else stands there becomes
// "\x1b".
std::string CleanText(absl::string_view text);

// The messages of a compiler with errors before all else, so that a cut leaves them. A message
// begins with a line like "kernel.cu(3): warning #177-D: ...".
std::string ErrorsFirst(absl::string_view log);

// At most `limit` bytes, whole characters and escapes of CleanText, and a last line that says so if
// anything was cut.
std::string CutText(std::string text, std::size_t limit, bool* cut);

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_TEXT_H_
