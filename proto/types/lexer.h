// The words of a kernel as tokens. Used by the parsers of this room alone.
#ifndef GRIDCLOCK_PROTO_TYPES_LEXER_H_
#define GRIDCLOCK_PROTO_TYPES_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gridclock {

// Longer text is refused, so that what a parse costs is bounded.
inline constexpr std::size_t kMaxWordsBytes = 16 * 1024;
inline constexpr std::size_t kMaxNameBytes = 128;

struct Token {
  enum class Kind : std::uint8_t { kEnd, kName, kVariable, kInt, kFloat, kSymbol };
  Kind kind = Kind::kEnd;
  absl::string_view text;  // Into the text that was read.
};

// True for [a-z_][a-z0-9_]* and [A-Z][A-Za-z0-9_]* of a sane length.
bool IsName(absl::string_view text);
bool IsVariable(absl::string_view text);
// Words of the language, dtypes and functions: no operand, attribute or word may be named so.
bool IsReserved(absl::string_view name);
bool IsFunction(absl::string_view name);

// Reads tokens one after the other. The text must outlive it.
class TokenReader {
 public:
  static absl::StatusOr<TokenReader> Create(absl::string_view text);

  // The token `ahead` places on; the end token beyond the last.
  const Token& Peek(std::size_t ahead = 0) const;
  bool At(absl::string_view text) const { return AtAhead(0, text); }
  bool AtAhead(std::size_t ahead, absl::string_view text) const;
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  Token Next();
  bool TryEat(absl::string_view text);
  absl::Status Eat(absl::string_view text);
  // A name that is not reserved; `what` says in the error what it was to be.
  absl::StatusOr<std::string> EatName(absl::string_view what);
  absl::StatusOr<std::string> EatVariable(absl::string_view what);

  // "at 'K ]': want ':', got ']'".
  absl::Status Want(absl::string_view what) const;

 private:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  std::vector<Token> tokens_;  // Ends with the end token.
  std::size_t at_ = 0;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_LEXER_H_
