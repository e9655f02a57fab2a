#include "kernels/compiler/source_tokens.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gridclock {
namespace {

using Kind = SourceToken::Kind;

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}
// Bytes of other scripts may stand in identifiers too.
bool IsWord(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '_' || byte >= 0x80;
}
bool IsRawPrefix(absl::string_view word) {
  return word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
}

class Cutter {
 public:
  explicit Cutter(absl::string_view source) : source_(source) {}

  std::vector<SourceToken> Cut() {
    while (at_ < source_.size()) Step();
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void Step() {
    const char c = Peek();
    if (c == '\n') line_begins_ = true;
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      ++at_;
    } else if (c == '/' && Peek(1) == '/') {
      at_ = EndOfLine(at_);
    } else if (c == '/' && Peek(1) == '*') {
      at_ = Behind("*/", at_ + 2);
    } else {
      Take(c);
    }
  }

  void Take(char c) {
    const std::size_t begin = at_;
    const bool first = std::exchange(line_begins_, false);
    if (c == '#' && first) return Add(Kind::kDirective, begin, EndOfDirective());
    if (c == '"' || c == '\'') return Add(Kind::kText, begin, EndOfQuoted(c));
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Add(Kind::kText, begin, EndOfNumber());
    if (!IsWord(c)) return Add(Kind::kPunct, begin, at_ + 1);
    std::size_t end = at_;
    while (end < source_.size() && IsWord(source_[end])) ++end;
    const bool raw = end < source_.size() && source_[end] == '"' &&
                     IsRawPrefix(source_.substr(begin, end - begin));
    if (raw) return Add(Kind::kText, begin, EndOfRaw(end));
    Add(Kind::kWord, begin, end);
  }

  void Add(Kind kind, std::size_t begin, std::size_t end) {
    tokens_.push_back({kind, begin, end});
    at_ = end;
  }

  // The newline itself is not part of it; a backslash before it continues the line.
  std::size_t EndOfLine(std::size_t at) const {
    while (true) {
      const std::size_t end = source_.find('\n', at);
      if (end == absl::string_view::npos) return source_.size();
      std::size_t last = end;
      if (last > at && source_[last - 1] == '\r') --last;
      if (last == at || source_[last - 1] != '\\') return end;
      at = end + 1;
    }
  }
  // A comment of several lines in a directive is part of it.
  std::size_t EndOfDirective() const {
    std::size_t end = EndOfLine(at_);
    std::size_t comment = source_.find("/*", at_);
    while (comment < end) {
      const std::size_t line_comment = source_.find("//", at_);
      if (line_comment < comment) break;
      const std::size_t behind = Behind("*/", comment + 2);
      end = std::max(end, EndOfLine(behind));
      comment = source_.find("/*", behind);
    }
    return end;
  }
  std::size_t Behind(absl::string_view mark, std::size_t at) const {
    const std::size_t found = source_.find(mark, std::min(at, source_.size()));
    return found == absl::string_view::npos ? source_.size() : found + mark.size();
  }
  // A quote that its line does not close is closed there, as compilers do.
  std::size_t EndOfQuoted(char quote) const {
    for (std::size_t at = at_ + 1; at < source_.size(); ++at) {
      if (source_[at] == quote) return at + 1;
      if (source_[at] == '\n') return at;
      if (source_[at] == '\\') ++at;
    }
    return source_.size();
  }
  std::size_t EndOfNumber() const {
    std::size_t at = at_;
    while (at < source_.size() &&
           (IsWord(source_[at]) || source_[at] == '.' ||
            (source_[at] == '\'' && at + 1 < source_.size() && IsWord(source_[at + 1])))) {
      ++at;
    }
    return at;
  }
  // R"mark( ... )mark"
  std::size_t EndOfRaw(std::size_t quote) const {
    constexpr std::size_t kLongestMark = 16;
    const std::size_t open = source_.find('(', quote);
    if (open == absl::string_view::npos || open - quote - 1 > kLongestMark) {
      return EndOfLine(quote);
    }
    const std::string mark = absl::StrCat(")", source_.substr(quote + 1, open - quote - 1), "\"");
    return Behind(mark, open + 1);
  }

  const absl::string_view source_;
  std::size_t at_ = 0;
  bool line_begins_ = true;
  std::vector<SourceToken> tokens_;
};

}  // namespace

std::vector<SourceToken> CutSource(absl::string_view source) {
  return Cutter(source).Cut();
}

}  // namespace gridclock
