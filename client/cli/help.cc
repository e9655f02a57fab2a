#include "client/cli/help.h"

#include "absl/strings/str_cat.h"

namespace gridclock::cli {

std::string HelpOf(absl::string_view page, absl::string_view command) {
  constexpr absl::string_view kOpen = "\n```help cpu\n";
  const std::string heading = command.empty() ? std::string("# gridclock\n")
                                              : absl::StrCat("\n## gridclock ", command, "\n");
  const std::size_t section = page.find(heading);
  if (section == absl::string_view::npos) return "";
  page.remove_prefix(section + heading.size() - 1);
  const std::size_t end = page.find("\n## ");
  page = page.substr(0, end);
  const std::size_t open = page.find(kOpen);
  if (open == absl::string_view::npos) return "";
  page.remove_prefix(open + kOpen.size());
  return absl::StrCat(page.substr(0, page.find("\n```")), "\n");
}

}  // namespace gridclock::cli
