#include "base/text.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

bool IsRest(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Bytes of the character that begins there; 0 if none does.
std::size_t CharacterAt(absl::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const std::size_t size = byte < 0x80       ? 1
                           : byte >> 5 == 6  ? 2
                           : byte >> 4 == 14 ? 3
                           : byte >> 3 == 30 ? 4
                                             : 0;
  if (size == 0 || text.size() - at < size) return 0;
  std::uint32_t code = size == 1 ? byte : byte & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (!IsRest(text[at + i])) return 0;
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[size] || code > 0x10ffff || surrogate ? 0 : size;
}

// Not so what ends a line, turns the direction of text or is drawn as nothing.
bool IsShown(absl::string_view character) {
  if (character.size() == 1) {
    return character[0] == '\n' || character[0] == '\t' ||
           !absl::ascii_iscntrl(static_cast<unsigned char>(character[0]));
  }
  const bool c1 = character.size() == 2 && character[0] == '\xc2' &&
                  static_cast<unsigned char>(character[1]) < 0xa0;
  const auto is_in = [&](absl::string_view first, absl::string_view last) {
    return character.size() == first.size() && character >= first && character <= last;
  };
  return !c1 && !is_in("\u200b", "\u200f") && !is_in("\u2028", "\u202e") &&
         !is_in("\u2060", "\u2069") && !is_in("\u061c", "\u061c") && !is_in("\ufeff", "\ufeff");
}

// `end`, or where the escape of CleanText begins that stands across it.
std::size_t EscapeBorder(absl::string_view text, std::size_t end) {
  constexpr std::size_t kEscape = sizeof("\\x1b") - 1;
  for (std::size_t back = 1; back < kEscape && back <= end; ++back) {
    if (absl::StartsWith(text.substr(end - back), "\\x")) return end - back;
  }
  return end;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const std::size_t size = CharacterAt(text, 0);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string CleanText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = CharacterAt(text, at);
    const absl::string_view character = text.substr(at, size == 0 ? 1 : size);
    at += character.size();
    if (size != 0 && IsShown(character)) {
      out.append(character.data(), character.size());
      continue;
    }
    for (const char c : character) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string ErrorsFirst(absl::string_view log) {
  std::string errors, others;
  std::string* at = &others;
  absl::ConsumeSuffix(&log, "\n");
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const bool indented = !line.empty() && absl::ascii_isspace(static_cast<unsigned char>(line[0]));
    const auto says = [&](absl::string_view word) {
      return !indented && absl::StrContains(line, absl::StrCat("): ", word));
    };
    if (says("error") || says("Error") || says("catastrophic")) at = &errors;
    if (says("warning") || says("note") || says("remark")) at = &others;
    absl::StrAppend(at, line, "\n");
  }
  return errors + others;
}

std::string CutText(std::string text, std::size_t limit, bool* cut) {
  *cut = text.size() > limit;
  if (!*cut) return text;
  const std::string mark = absl::StrCat("\n... cut at ", limit, " bytes\n");
  std::size_t end = limit > mark.size() ? limit - mark.size() : 0;
  while (end > 0 && IsRest(text[end])) --end;
  text.resize(EscapeBorder(text, end));
  return text + mark;
}

}  // namespace gridclock
