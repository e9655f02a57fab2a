#include "client/cli/terminal.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gridclock::cli {
namespace {

// The length of the UTF-8 character that `text` begins with, or 0 if it begins with none.
std::size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (length == 3 && first == 0xE0 && byte(1) < 0xA0) return 0;  // Overlong.
  if (length == 3 && first == 0xED && byte(1) > 0x9F) return 0;  // A surrogate.
  if (length == 4 && first == 0xF0 && byte(1) < 0x90) return 0;
  if (length == 4 && first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// C0 and C1 controls, and the marks that turn the direction of text.
bool IsControl(absl::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7F;
  const auto second = static_cast<unsigned char>(character[1]);
  if (character.size() == 2) return first == 0xC2 && second < 0xA0;
  if (character.size() != 3 || first != 0xE2) return false;
  const auto third = static_cast<unsigned char>(character[2]);
  if (second == 0x80) return third == 0x8E || third == 0x8F || (third >= 0xA8 && third <= 0xAE);
  return second == 0x81 && third >= 0xA6 && third <= 0xA9;
}

const char* Code(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "1";
    case Ink::kDim:
      return "2";
    case Ink::kGreen:
      return "32";
    case Ink::kYellow:
      return "33";
    case Ink::kRed:
      return "31";
    case Ink::kBlue:
      return "36";
    case Ink::kPlain:
      break;
  }
  return "0";
}

void MeasureOut(Terminal* out) {
  if (!isatty(STDOUT_FILENO)) return;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    out->out_width = size.ws_col;
    out->out_height = size.ws_row;
  }
  int columns = 0;
  const char* said = std::getenv("COLUMNS");
  if (said != nullptr && absl::SimpleAtoi(said, &columns) && columns > 0) out->out_width = columns;
}

}  // namespace

Terminal DetectTerminal() {
  Terminal out;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || absl::string_view(term) == "dumb";
  out.colour = isatty(STDOUT_FILENO) && !dumb && (no_color == nullptr || *no_color == '\0');
  out.live = isatty(STDERR_FILENO) && !dumb;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) out.width = size.ws_col;
  MeasureOut(&out);
  return out;
}

std::string Paint(const Terminal& terminal, Ink ink, absl::string_view text) {
  if (!terminal.colour || ink == Ink::kPlain) return std::string(text);
  return absl::StrCat("\x1b[", Code(ink), "m", text, "\x1b[0m");
}

std::string Escape(absl::string_view text, bool lines) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const absl::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    if (lines && character == "\n") {
      out += '\n';
    } else if (length == 0 || IsControl(character)) {
      for (const char c : character) {
        absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(c));
      }
    } else {
      absl::StrAppend(&out, character);
    }
  }
  return out;
}

std::size_t Width(absl::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (escape) {
      escape = c != 'm';
    } else if (c == '\x1b') {
      escape = true;  // A colour of ours.
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

absl::string_view Fit(absl::string_view text, std::size_t columns) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && columns-- == 0) return text.substr(0, i);
  }
  return text;
}

std::string FitCells(absl::string_view line, std::size_t columns) {
  if (Width(line) <= columns) return std::string(line);
  if (columns == 0) return "";
  absl::string_view kept = Fit(line, columns - 1);
  if (line[kept.size()] != ' ') {
    // A first word is cut, but not within a number of its own.
    const auto blank = kept.rfind(' ');
    const auto end = blank != kept.npos ? blank : kept.find_last_not_of("0123456789.") + 1;
    kept = kept.substr(0, end);
  }
  kept = absl::StripTrailingAsciiWhitespace(kept);
  if (line.substr(kept.size(), 2) != "  ") {
    const auto gap = kept.rfind("  ");
    const absl::string_view cell = gap == kept.npos ? kept : kept.substr(gap + 2);
    const bool is_number = !cell.empty() && absl::ascii_isdigit(cell[0]);
    if (is_number)
      kept = absl::StripTrailingAsciiWhitespace(kept.substr(0, kept.size() - cell.size()));
  }
  return absl::StrCat(kept, "…");
}

}  // namespace gridclock::cli
