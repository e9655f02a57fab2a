#include "client/cli/source_words.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "proto/types/infer_words.h"

namespace gridclock::cli {
namespace {

// What stands behind "// gridclock:" or "* gridclock:"; nullopt for other lines.
std::optional<absl::string_view> LineOfWords(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  for (const absl::string_view mark : {"//", "/*", "*", "#"}) {
    if (absl::ConsumePrefix(&line, mark)) break;
  }
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "gridclock:")) return std::nullopt;
  absl::ConsumeSuffix(&line, "*/");
  return absl::StripAsciiWhitespace(line);
}

bool ConsumeWord(absl::string_view word, absl::string_view* text) {
  if (!absl::StartsWith(*text, absl::StrCat(word, " "))) return false;
  *text = absl::StripLeadingAsciiWhitespace(text->substr(word.size()));
  return true;
}

bool IsWordByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':';
}

// Where the entry at the beginning of `text` ends. A colon alone is not of it: "x: f32[4]".
std::size_t EndOfEntry(absl::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && IsWordByte(text[at])) {
    const bool qualifies = text.substr(at, 2) == "::";
    if (text[at] == ':' && !qualifies) break;
    at += qualifies ? 2 : 1;
  }
  if (at == 0 || at >= text.size() || text[at] != '<') return at;
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '<') ++depth;
    if (text[at] == '>' && --depth == 0) return at + 1;
  }
  return at;
}

absl::Status AtLine(int line, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
}

class Reader {
 public:
  absl::StatusOr<std::vector<SourceWords>> Read(absl::string_view source) {
    int number = 0;
    bool follows = false;
    for (const absl::string_view line : absl::StrSplit(source, '\n')) {
      ++number;
      const auto words = LineOfWords(line);
      if (words.has_value() && !words->empty()) {
        GC_RETURN_IF_ERROR(follows ? Continue(*words, number) : Begin(*words, number));
      }
      follows = words.has_value() && !words->empty();
    }
    for (SourceWords& one : all_) Finish(&one);
    return std::move(all_);
  }

 private:
  absl::Status Begin(absl::string_view text, int number) {
    SourceLaunch first = CutEntry(text);
    if (first.entry.empty()) {
      return AtLine(number, "want the name of an entry behind 'gridclock:'");
    }
    SourceWords one;
    one.line = number;
    one.entry = first.entry;
    one.words = absl::StrCat(WordsName(first.entry), " ", std::exchange(first.clauses, {}));
    one.launches.push_back(std::move(first));
    all_.push_back(std::move(one));
    in_launches_ = false;
    return absl::OkStatus();
  }

  absl::Status Continue(absl::string_view text, int number) {
    SourceWords& one = all_.back();
    if (ConsumeWord("launch", &text)) {
      SourceLaunch launch = CutEntry(text);
      if (launch.entry.empty()) return AtLine(number, "want the name of an entry behind 'launch'");
      if (!std::exchange(in_launches_, true)) one.launches.clear();
      one.launches.push_back(std::move(launch));
      return absl::OkStatus();
    }
    if (ConsumeWord("global", &text)) {
      const std::pair<absl::string_view, absl::string_view> sides =
          absl::StrSplit(text, absl::MaxSplits('=', 1));
      one.globals.push_back({std::string(absl::StripAsciiWhitespace(sides.first)),
                             std::string(absl::StripAsciiWhitespace(sides.second))});
      if (one.globals.back().from.empty()) return AtLine(number, "want 'global NAME = FROM'");
      return absl::OkStatus();
    }
    absl::StrAppend(in_launches_ ? &one.launches.back().clauses : &one.words, " ", text);
    return absl::OkStatus();
  }

  static void Finish(SourceWords* one) {
    one->words = std::string(absl::StripAsciiWhitespace(one->words));
  }

  std::vector<SourceWords> all_;
  bool in_launches_ = false;
};

}  // namespace

absl::StatusOr<std::vector<SourceWords>> ReadSourceWords(absl::string_view source) {
  return Reader().Read(source);
}

SourceLaunch CutEntry(absl::string_view text) {
  SourceLaunch out;
  text = absl::StripAsciiWhitespace(text);
  out.cooperative = ConsumeWord("cooperative", &text);
  const std::size_t end = EndOfEntry(text);
  out.entry = std::string(text.substr(0, end));
  out.clauses = std::string(absl::StripAsciiWhitespace(text.substr(end)));
  return out;
}

std::string WithoutBlanks(absl::string_view text) {
  std::string out(text);
  out.erase(std::remove_if(out.begin(), out.end(),
                           [](unsigned char c) { return absl::ascii_isspace(c); }),
            out.end());
  return out;
}

std::string EntryNameAlone(absl::string_view entry) {
  entry = absl::StripAsciiWhitespace(entry.substr(0, entry.find('<')));
  const std::size_t colon = entry.rfind(':');
  return std::string(colon == absl::string_view::npos ? entry : entry.substr(colon + 1));
}

const SourceWords* FindSourceWords(const std::vector<SourceWords>& all, absl::string_view entry) {
  if (entry.empty()) return all.size() == 1 ? &all[0] : nullptr;
  const SourceWords* alike = nullptr;
  int count = 0;
  for (const SourceWords& one : all) {
    if (WithoutBlanks(one.entry) == WithoutBlanks(entry)) return &one;
    if (EntryNameAlone(one.entry) != entry) continue;
    alike = &one;
    ++count;
  }
  return count == 1 ? alike : nullptr;
}

std::vector<std::string> TemplatesOf(std::span<const SourceWords> all) {
  std::vector<std::string> out;
  for (const SourceWords& one : all) {
    for (const SourceLaunch& launch : one.launches) {
      const bool known = std::find(out.begin(), out.end(), launch.entry) != out.end();
      if (absl::StrContains(launch.entry, "<") && !known) out.push_back(launch.entry);
    }
  }
  return out;
}

}  // namespace gridclock::cli
