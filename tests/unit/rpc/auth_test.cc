#include "server/rpc/auth.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenFile, FindsWhoHasAToken) {
  const std::string text = absl::StrCat("# people\n\nalice read,run ", HashToken("s3cret", "00ff"),
                                        "\n  bob   read   ", HashToken("other", NewSalt()), "\n");
  ASSERT_OK_AND_ASSIGN(const TokenFile file, TokenFile::Parse(text));
  ASSERT_NE(file.Find("s3cret"), nullptr);
  EXPECT_EQ(file.Find("s3cret")->name, "alice");
  EXPECT_EQ(file.Find("s3cret")->roles, 3);
  EXPECT_EQ(file.Find("other")->name, "bob");
  EXPECT_EQ(file.Find("s3cre"), nullptr);
  EXPECT_EQ(file.Find(""), nullptr);
}

TEST(TokenFile, ALongTokenIsNobodysAndCostsNoHash) {
  const std::string longest(256, 'x'), longer(257, 'x');
  ASSERT_OK_AND_ASSIGN(const TokenFile file,
                       TokenFile::Parse(absl::StrCat("alice read ", HashToken(longest, "00"),
                                                     "\nbob read ", HashToken(longer, "00"))));
  ASSERT_NE(file.Find(longest), nullptr);
  EXPECT_EQ(file.Find(longest)->name, "alice");
  EXPECT_EQ(file.Find(longer), nullptr);
}

// The digest of "00ff" + "s3cret" by sha256sum.
TEST(TokenFile, TheHashIsThatOfSha256sum) {
  EXPECT_EQ(HashToken("s3cret", "00ff"),
            "sha256:00ff:280199f4c5e1262acf985ec40a43fc1b416750130a6369695bba95fb18a835a0");
}

TEST(TokenFile, SaysWhichLineIsWrongAndNotWhatIsInIt) {
  const std::string good = HashToken("t", "00");
  for (const std::string& line :
       {std::string("alice read"), absl::StrCat("alice write ", good),
        std::string("alice read sha256:00:1234"), std::string("alice read md5:00:11"),
        absl::StrCat("alice read ", good, " more")}) {
    EXPECT_THAT(TokenFile::Parse(absl::StrCat("# one\n", line)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 2"), Not(HasSubstr("alice")))));
  }
}

TEST(TokenFile, NamesAWordThatIsNoRoleAndNeverAHashInItsPlace) {
  const std::string hash = HashToken("t", "00");
  EXPECT_THAT(TokenFile::Parse(absl::StrCat("alice read,exec ", hash)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(", got 'exec'")));
  EXPECT_THAT(TokenFile::Parse(absl::StrCat("alice ", hash, " read")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("got another word"), Not(HasSubstr("sha256")))));
  EXPECT_THAT(TokenFile::Parse(absl::StrCat("alice s3cret ", hash)),
              StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("s3cret"))));
}

// One would stand in logs and not be seen.
TEST(TokenFile, ANameIsOfPrintableAscii) {
  const std::string rest = absl::StrCat(" read ", HashToken("t", "00"));
  for (const std::string name :
       {"\xEF\xBB\xBFzoe", "an\tn", "ann\x1b[31m", "ann\x7f", "j\xc3\xbcrg"}) {
    EXPECT_THAT(TokenFile::Parse(absl::StrCat("# one\n", name, rest)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("line 2: want a name of printable ASCII"),
                               HasSubstr("type the name anew"), Not(HasSubstr("ann")))));
  }
}

TEST(TokenFile, AByteOrderMarkInFrontIsNoPartOfAName) {
  ASSERT_OK_AND_ASSIGN(const TokenFile file, TokenFile::Parse(absl::StrCat("\xEF\xBB\xBF"
                                                                           "ann read ",
                                                                           HashToken("t", "00"))));
  ASSERT_NE(file.Find("t"), nullptr);
  EXPECT_EQ(file.Find("t")->name, "ann");
}

TEST(TokenFile, WithoutATokenIsRefused) {
  EXPECT_THAT(TokenFile::Parse("# nobody\n"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no token")));
}

}  // namespace
}  // namespace gridclock
