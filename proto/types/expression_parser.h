// Expressions within longer text. Used by the parsers of this room alone.
#ifndef GRIDCLOCK_PROTO_TYPES_EXPRESSION_PARSER_H_
#define GRIDCLOCK_PROTO_TYPES_EXPRESSION_PARSER_H_

#include "absl/status/statusor.h"
#include "proto/types/expression.h"
#include "proto/types/lexer.h"

namespace gridclock {

// Trees are at most this high, so that walking one never runs out of stack. Each operator of a
// chain like a + b + c adds one.
inline constexpr int kMaxExprDepth = 64;

// Reads one expression and stops at the first token that is not of it.
absl::StatusOr<Expr> ReadExpr(TokenReader& reader);
// The same, but leaves a '?' unread: what follows it may be dimensions.
absl::StatusOr<Expr> ReadOr(TokenReader& reader);
// Goes on after ReadOr: reads "? a : b" if it is there.
absl::StatusOr<Expr> ReadChoice(Expr condition, TokenReader& reader);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_EXPRESSION_PARSER_H_
