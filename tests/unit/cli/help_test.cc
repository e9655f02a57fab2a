#include "client/cli/help.h"

#include <gmock/gmock.h>

namespace gridclock::cli {
namespace {

constexpr char kPage[] =
    "# gridclock\n\n```help cpu\nall\n```\n\n## gridclock run\n\nsome words\n\n"
    "```help cpu\nrun it\n  --device\n```\n\n```sh cpu\nx\n```\n\n## gridclock ping\n\n";

TEST(HelpTest, TakesTheBlockOfTheSection) {
  EXPECT_EQ(HelpOf(kPage, ""), "all\n");
  EXPECT_EQ(HelpOf(kPage, "run"), "run it\n  --device\n");
}

TEST(HelpTest, ASectionWithoutABlockHasNoHelp) {
  EXPECT_EQ(HelpOf(kPage, "ping"), "");
  EXPECT_EQ(HelpOf(kPage, "nothing"), "");
}

TEST(HelpTest, NoLineIsWiderThanATerminal) {
  std::size_t start = 0;
  const std::string page(CliPage());
  while (start < page.size()) {
    const std::size_t end = page.find('\n', start);
    EXPECT_LE(end - start, 100U) << page.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace gridclock::cli
