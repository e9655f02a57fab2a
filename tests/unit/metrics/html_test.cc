#include "server/metrics/html.h"

#include <gtest/gtest.h>

namespace gridclock {
namespace {

TEST(HtmlTest, WhatIsPutInIsTextAndNeverMarkup) {
  Html page;
  page.Add("<b title=\"$0\">$1</b>", "\"><script>", "<img src=x onerror='a&b'>");
  EXPECT_EQ(page.Take(),
            "<b title=\"&quot;&gt;&lt;script&gt;\">"
            "&lt;img src=x onerror=&#39;a&amp;b&#39;&gt;</b>");
}

TEST(HtmlTest, ADollarInAValueIsADollar) {
  Html page;
  page.Add("<i>$0</i>", "$1 $$");
  EXPECT_EQ(page.Take(), "<i>$1 $$</i>");
}

TEST(HtmlTest, BytesThatAreNoTextAreSpeltOut) {
  EXPECT_EQ(EscapeHtml("a\x1b[31m\xff"), "a\\x1b[31m\\xff");
  EXPECT_EQ(EscapeHtml("12 \xc2\xb5s"), "12 \xc2\xb5s");
  EXPECT_EQ(EscapeHtml(absl::string_view("a\0b", 3)), "a\\x00b");
}

}  // namespace
}  // namespace gridclock
