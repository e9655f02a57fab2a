// Every ```words block of docs/signatures.md is read with the real parser: blocks tagged `refused`
// must be refused, all others must parse.
#include <cstdlib>
#include <fstream>
#include <functional>
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

// ---- The table of limits. ----

// piece(0), piece(1), ... with `between` in between, `count` in all.
template <typename Piece>
std::string Join(int count, const char* between, const Piece& piece) {
  std::string text;
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i == 0 ? "" : between, piece(i));
  return text;
}

std::string Repeat(const std::string& text, int count) {
  return Join(count, "", [&](int) { return text; });
}

// Words that have `n` of what a row of the table names, and are right but for that.
struct Limit {
  const char* what;
  std::function<std::string(int n)> words;
};
const Limit kLimits[] = {
    {"bytes of the words", [](int n) { return "k" + std::string(n - 1, ' '); }},
    {"bytes of a name", [](int n) { return std::string(n, 'k'); }},
    {"inputs",
     [](int n) {
       return "k " + Join(n, ", ", [](int i) { return absl::StrCat("x", i, ": T[]"); });
     }},
    {"outputs",
     [](int n) {
       return "k -> " + Join(n, ", ", [](int i) { return absl::StrCat("y", i, ": f32[]"); });
     }},
    {"attributes",
     [](int n) {
       return "k; " + Join(n, ", ", [](int i) { return absl::StrCat("a", i, ": i64"); });
     }},
    {"conditions after `where`",
     [](int n) { return "k x: T[N] where " + Join(n, ", ", [](int) { return "N > 0"; }); }},
    {"values of a set after `in`",
     [](int n) {
       return "k; a: i64 in {" + Join(n, ", ", [](int i) { return absl::StrCat(i); }) + "}";
     }},
    {"scratch tensors",
     [](int n) {
       return "k " + Join(n, " ", [](int i) { return absl::StrCat("scratch s", i, ": f32[]"); });
     }},
    {"params", [](int n) { return "k params " + Join(n, ", ", [](int) { return "null"; }); }},
    {"dimensions and runs of an operand",
     [](int n) {
       return "k x: T[*, " + Join(n - 1, ", ", [](int i) { return absl::StrCat("N", i); }) + "]";
     }},
    {"alternatives that the choices of an operand make",
     [](int n) {
       // One within another adds one, one after another doubles: nested alone, 64 are too deep.
       const int deep = n / 4 - 1;
       std::string dims = Repeat("c ? [", deep) + "A" + Repeat("] : [A]", deep);
       if (n % 4 != 0) dims = absl::StrCat("c ? [", dims, "] : [A]");
       return "k x: T[A], y: T[" + dims + ", c ? [A] : [A], c ? [A] : [A]]; c: bool";
     }},
    {"choices within one another",
     [](int n) {
       return "k x: T[A], y: T[" + Repeat("c ? [", n) + "A" + Repeat("] : [A]", n) + "]; c: bool";
     }},
    {"levels of an expression",
     [](int n) { return "k flops " + Join(n, " + ", [](int) { return "1"; }); }},
    {"dimensions of `grid`, `block` or `cluster`",
     [](int n) { return "k grid (" + Join(n, ", ", [](int) { return "1"; }) + ")"; }},
};

TEST(SignaturesPage, TellsTheLimitsThatHold) {
  const std::string page = ReadPage();
  for (const Limit& limit : kLimits) {
    const std::size_t row = page.find(absl::StrCat("\n| ", limit.what, " | "));
    ASSERT_NE(row, std::string::npos) << limit.what;
    const int most = std::atoi(page.c_str() + page.find(" | ", row) + 3);
    ASSERT_GT(most, 0) << limit.what;
    EXPECT_THAT(ParseKernelSpec(limit.words(most)), IsOk()) << limit.what;
    EXPECT_FALSE(ParseKernelSpec(limit.words(most + 1)).ok()) << limit.what;
  }
}

}  // namespace
}  // namespace gridclock
