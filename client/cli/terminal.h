// What the output goes to, and text that is safe to show there.
#ifndef GRIDCLOCK_CLIENT_CLI_TERMINAL_H_
#define GRIDCLOCK_CLIENT_CLI_TERMINAL_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace gridclock::cli {

enum class Ink { kPlain, kBold, kDim, kGreen, kYellow, kRed, kBlue };

struct Terminal {
  bool colour = false;  // Standard output is a terminal and NO_COLOR is not set.
  bool live = false;    // Standard error is a terminal: progress may be drawn and redrawn there.
  int width = 80;
  int out_width = 0;   // Of standard output, if that is a terminal; 0: no bound.
  int out_height = 0;  // The same of its lines.
};
// Looks at the descriptors and at the environment.
Terminal DetectTerminal();

// The streams of a command and how to draw on them.
struct Console {
  std::ostream& out;
  std::ostream& err;
  Terminal terminal;
};

std::string Paint(const Terminal& terminal, Ink ink, absl::string_view text);

// Text of a server or a file without control characters: "\x1b" becomes "\\x1b". A newline stays if
// `lines`. What is no UTF-8 becomes "\\xff" too.
std::string Escape(absl::string_view text, bool lines = false);

// Columns that a text takes: characters, not bytes.
std::size_t Width(absl::string_view text);
// The beginning of a text without colours, at most `columns` whole characters.
absl::string_view Fit(absl::string_view text, std::size_t columns);
// A line of cells, two blanks or more between them, in at most `columns`: what is cut ends with "…"
// behind a whole word, and a cell that begins with a digit is there whole, unit included, or not.
std::string FitCells(absl::string_view line, std::size_t columns);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_TERMINAL_H_
