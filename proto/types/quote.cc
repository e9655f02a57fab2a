#include "proto/types/quote.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace gridclock {

std::string Escape(absl::string_view text) {
  constexpr std::size_t kMost = 64;
  constexpr absl::string_view kCut = "...";
  std::string escaped;
  std::size_t border = 0;  // Where it may be cut: no escape stands across it.
  for (const char& c : text) {
    escaped += absl::CEscape(absl::string_view(&c, 1));
    if (escaped.size() <= kMost - kCut.size()) border = escaped.size();
    if (escaped.size() > kMost) return absl::StrCat(escaped.substr(0, border), kCut);
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
