#include "proto/types/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gridclock {

std::string Escape(absl::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string escaped = absl::CEscape(text.substr(0, kMost));
  if (escaped.size() > kMost || text.size() > kMost) {
    escaped.resize(kMost - 3);
    escaped += "...";
  }
  return escaped;
}

std::string Quote(absl::string_view text) {
  return absl::StrCat("'", Escape(text), "'");
}

std::string QuoteList(const std::vector<absl::string_view>& names) {
  constexpr std::size_t kMost = 16;
  std::string list = "[";
  for (std::size_t i = 0; i < names.size() && i < kMost; ++i) {
    absl::StrAppend(&list, i == 0 ? "" : ",", Quote(names[i]));
  }
  if (names.size() > kMost) absl::StrAppend(&list, ",... ", names.size() - kMost, " more");
  return list + "]";
}

}  // namespace gridclock
