#include "proto/types/lexer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/types/dtype.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

using Kind = Token::Kind;

// Longest first, so that "->" is not read as "-".
constexpr absl::string_view kSymbols[] = {"...", "->", "&&", "||", "==", "!=", "<=", ">=", "<", ">",
                                          "=",   "!",  "+",  "-",  "*",  "/",  "%",  "(",  ")", "[",
                                          "]",   "{",  "}",  "?",  ":",  ",",  ";",  "@"};

constexpr absl::string_view kReserved[] = {
    "inout",   "over",    "swap",   "in",    "i64",   "f64",   "bool",     "dtype",    "inf",
    "true",    "false",   "where",  "flops", "bytes", "when",  "shared",   "grid",     "block",
    "cluster", "scratch", "params", "align", "table", "sizes", "pointers", "multiple", "null"};
constexpr absl::string_view kFunctions[] = {"ceil_div", "min",  "max", "next_pow2", "numel",
                                            "bytes",    "rank", "dim", "count",     "sizeof"};

template <std::size_t kCount>
bool Holds(const absl::string_view (&words)[kCount], absl::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

bool IsWordChar(char c) {
  return absl::ascii_isalnum(c) || c == '_';
}

std::size_t SkipBlanks(absl::string_view text, std::size_t at) {
  while (at < text.size()) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (absl::ascii_isspace(text[at])) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

std::size_t SkipDigits(absl::string_view text, std::size_t at) {
  while (at < text.size() && absl::ascii_isdigit(text[at])) ++at;
  return at;
}

Token ReadNumber(absl::string_view text, std::size_t start) {
  Kind kind = Kind::kInt;
  std::size_t at = SkipDigits(text, start);
  if (at < text.size() && text[at] == '.') {
    kind = Kind::kFloat;
    at = SkipDigits(text, at + 1);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    if (const std::size_t end = SkipDigits(text, digits); end > digits) {
      kind = Kind::kFloat;
      at = end;
    }
  }
  return {kind, text.substr(start, at - start)};
}

Token ReadWord(absl::string_view text, std::size_t start) {
  std::size_t at = start;
  while (at < text.size() && IsWordChar(text[at])) ++at;
  const Kind kind = absl::ascii_isupper(text[start]) ? Kind::kVariable : Kind::kName;
  return {kind, text.substr(start, at - start)};
}

absl::Status BadCharacter(absl::string_view text, std::size_t at) {
  return absl::InvalidArgumentError(
      absl::StrCat("at ", Quote(text.substr(at, 16)), ": this is no token of the language"));
}

absl::StatusOr<Token> ReadToken(absl::string_view text, std::size_t at) {
  if (absl::ascii_isdigit(text[at])) {
    const Token number = ReadNumber(text, at);
    const std::size_t end = at + number.text.size();
    if (end < text.size() && IsWordChar(text[end])) return BadCharacter(text, at);
    return number;
  }
  if (IsWordChar(text[at])) {
    const Token word = ReadWord(text, at);
    const bool fits = word.kind == Kind::kName ? IsName(word.text) : IsVariable(word.text);
    if (!fits) return BadCharacter(text, at);
    return word;
  }
  for (const absl::string_view symbol : kSymbols) {
    if (text.substr(at, symbol.size()) == symbol) {
      return Token{Kind::kSymbol, text.substr(at, symbol.size())};
    }
  }
  return BadCharacter(text, at);
}

}  // namespace

bool IsName(absl::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || absl::ascii_isdigit(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
  });
}

bool IsVariable(absl::string_view text) {
  if (text.empty() || text.size() > kMaxNameBytes || !absl::ascii_isupper(text[0])) return false;
  return std::all_of(text.begin(), text.end(), IsWordChar);
}

bool IsReserved(absl::string_view name) {
  return Holds(kReserved, name) || Holds(kFunctions, name) || ParseDType(name).has_value();
}

bool IsFunction(absl::string_view name) {
  return Holds(kFunctions, name);
}

absl::StatusOr<TokenReader> TokenReader::Create(absl::string_view text) {
  if (text.size() > kMaxWordsBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the words are ", text.size(), " bytes long; at most ", kMaxWordsBytes));
  }
  std::vector<Token> tokens;
  std::size_t at = SkipBlanks(text, 0);
  while (at < text.size()) {
    absl::StatusOr<Token> token = ReadToken(text, at);
    if (!token.ok()) return token.status();
    tokens.push_back(*token);
    at = SkipBlanks(text, at + token->text.size());
  }
  tokens.push_back({Kind::kEnd, text.substr(text.size())});
  return TokenReader(std::move(tokens));
}

const Token& TokenReader::Peek(std::size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

bool TokenReader::AtAhead(std::size_t ahead, absl::string_view text) const {
  const Token& token = Peek(ahead);
  return token.kind != Kind::kEnd && token.text == text;
}

Token TokenReader::Next() {
  const Token token = Peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::TryEat(absl::string_view text) {
  if (!At(text)) return false;
  Next();
  return true;
}

absl::Status TokenReader::Eat(absl::string_view text) {
  if (TryEat(text)) return absl::OkStatus();
  return Want(absl::StrCat("'", text, "'"));
}

absl::StatusOr<std::string> TokenReader::EatName(absl::string_view what) {
  if (Peek().kind != Kind::kName) return Want(what);
  if (IsReserved(Peek().text)) return Want(absl::StrCat(what, " that is no reserved word"));
  return std::string(Next().text);
}

absl::StatusOr<std::string> TokenReader::EatVariable(absl::string_view what) {
  if (Peek().kind != Kind::kVariable) return Want(what);
  return std::string(Next().text);
}

absl::Status TokenReader::Want(absl::string_view what) const {
  const Token& token = Peek();
  const Token& before = at_ == 0 ? token : tokens_[at_ - 1];
  const absl::string_view place(before.text.data(),
                                token.text.data() + token.text.size() - before.text.data());
  const std::string got = token.kind == Kind::kEnd ? std::string("the end") : Quote(token.text);
  return absl::InvalidArgumentError(
      absl::StrCat("at ", Quote(place), ": want ", what, ", got ", got));
}

}  // namespace gridclock
