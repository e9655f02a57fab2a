// Every ```words block of docs/signatures.md is read with the real parser: blocks tagged `refused`
// must be refused, all others must parse.
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/types/kernel_spec.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

std::string ReadPage() {
  std::ifstream file(GRIDCLOCK_SIGNATURES_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// One signature; blank lines within a block part it from the next.
void Check(const std::string& words, bool refused) {
  const auto spec = ParseKernelSpec(words);
  EXPECT_EQ(spec.ok(), !refused) << words << "\n" << spec.status();
  if (!spec.ok()) return;
  const auto again = ParseKernelSpec(ToText(*spec));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, *spec) << words;
}

TEST(SignaturesPage, HoldsWordsThatParse) {
  int checked = 0;
  bool inside = false, refused = false;
  std::string words;
  const auto flush = [&] {
    if (!words.empty()) Check(words, refused);
    checked += !words.empty();
    words.clear();
  };
  const std::string page = ReadPage();
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "```")) {
      flush();
      inside = !inside && absl::StartsWith(line, "```words");
      refused = absl::StrContains(line, "refused");
    } else if (inside && line.empty()) {
      flush();
    } else if (inside) {
      absl::StrAppend(&words, line, "\n");
    }
  }
  EXPECT_GE(checked, 20);
}

}  // namespace
}  // namespace gridclock
