#include "server/metrics/html.h"

#include "absl/strings/str_replace.h"
#include "base/text.h"

namespace gridclock {

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(
      CleanText(text),
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

}  // namespace gridclock
