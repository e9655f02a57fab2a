// Text of a page. Whatever is put into it is escaped; what is markup stands in our own literals.
#ifndef GRIDCLOCK_SERVER_METRICS_HTML_H_
#define GRIDCLOCK_SERVER_METRICS_HTML_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"

namespace gridclock {

// For text and for attributes in double quotes. What is no text becomes "\\x1b".
std::string EscapeHtml(absl::string_view text);

class Html {
 public:
  // `markup` is a literal; $0 to $9 stand for the values, escaped.
  template <std::size_t kSize, typename... Values>
  Html& Add(const char (&markup)[kSize], const Values&... values) {
    absl::SubstituteAndAppend(&out_, markup, EscapeHtml(absl::StrCat(values))...);
    return *this;
  }
  Html& Add(const Html& part) {
    out_ += part.out_;
    return *this;
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_METRICS_HTML_H_
