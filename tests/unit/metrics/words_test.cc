#include "server/metrics/words.h"

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "gridclock/v1/system.pb.h"
#include "gridclock/v1/types.pb.h"

namespace gridclock {
namespace {

// types.proto promises that its flags are metric labels, so the two lists may not part.
TEST(WordsTest, FlagsAreThoseOfTheContract) {
  for (int i = 1; i < v1::Flag_ARRAYSIZE; ++i) {
    EXPECT_EQ(FlagWord(static_cast<Flag>(i)),
              absl::AsciiStrToLower(v1::Flag_Name(static_cast<v1::Flag>(i))));
  }
  EXPECT_EQ(v1::Flag_MAX, kFlagCount);
}

TEST(WordsTest, StatesAreThoseOfTheContract) {
  for (int i = 1; i < v1::Device::State_ARRAYSIZE; ++i) {
    EXPECT_EQ(StateWord(static_cast<WorkerState>(i)),
              absl::AsciiStrToLower(v1::Device::State_Name(static_cast<v1::Device::State>(i))));
  }
}

TEST(WordsTest, StopsAreThoseOfTheContract) {
  for (int i = 1; i < v1::Timing::Stop_ARRAYSIZE; ++i) {
    EXPECT_EQ(StopWord(static_cast<StopReason>(i)),
              absl::AsciiStrToLower(v1::Timing::Stop_Name(static_cast<v1::Timing::Stop>(i))));
  }
}

TEST(WordsTest, ARejectionIsItsReasonElseItsCode) {
  EXPECT_EQ(RejectionWord(WithReason(absl::UnavailableError(""), "DRAINING")), "draining");
  EXPECT_EQ(RejectionWord(absl::NotFoundError("")), "not_found");
  EXPECT_EQ(RejectionWord(WithReason(absl::NotFoundError(""), "a\nb")), "not_found");
}

// Column `reason` of the table in docs/errors.md.
std::set<std::string> ReasonsOfThePage() {
  std::ifstream page(GRIDCLOCK_ERRORS_PAGE);
  std::set<std::string> reasons;
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() < 3 || !absl::StartsWith(cells[2], " `")) continue;
    reasons.insert(absl::StrReplaceAll(cells[2], {{" ", ""}, {"`", ""}}));
  }
  return reasons;
}

TEST(WordsTest, ReasonsAreThoseOfThePage) {
  const std::set<std::string> page = ReasonsOfThePage();
  EXPECT_GT(page.size(), 30U);
  std::set<std::string> words;
  for (const absl::string_view reason : Reasons()) words.emplace(reason);
  EXPECT_EQ(words, page);
  for (const std::string& reason : page) {
    EXPECT_EQ(RejectionWord(WithReason(absl::UnavailableError(""), reason)),
              absl::AsciiStrToLower(reason));
  }
}

TEST(WordsTest, ALossIsOneOfFiveWords) {
  EXPECT_EQ(LossWord("time_limit"), "time_limit");
  EXPECT_EQ(LossWord(""), "other");
}

}  // namespace
}  // namespace gridclock
