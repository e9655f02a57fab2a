// Text that came from outside, made safe for a message.
#ifndef GRIDCLOCK_PROTO_TYPES_QUOTE_H_
#define GRIDCLOCK_PROTO_TYPES_QUOTE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gridclock {

// 'text': control characters and bytes that are not ASCII escaped, cut to 64 characters.
std::string Quote(absl::string_view text);
// The same without the quotes, for a field path: "inputs.x".
std::string Escape(absl::string_view text);
// ['a','b'], at most 16 of them.
std::string QuoteList(const std::vector<absl::string_view>& names);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_QUOTE_H_
