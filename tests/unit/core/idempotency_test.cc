#include "server/core/idempotency.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::_;
using Code = absl::StatusCode;
using Answer = RequestIds::Answer;
using Fresh = RequestIds::Fresh;

Answer Text(const std::string& text) {
  return std::make_shared<const std::string>(text);
}

class RequestIdsTest : public ::testing::Test {
 protected:
  static Limits SmallLimits() {
    Limits limits;
    limits.request_ids = 4;
    limits.request_id_bytes = 10;
    limits.request_id_seconds = 60;
    return limits;
  }
  bool IsFresh(const std::string& id, const std::string& principal = "ann") {
    const auto begun = ids_.Begin(principal, id, 1);
    return begun.ok() && std::holds_alternative<Fresh>(*begun);
  }
  FakeClock clock_;
  RequestIds ids_{clock_, SmallLimits()};
};

TEST_F(RequestIdsTest, ARetryWhileItRunsIsInProgress) {
  EXPECT_TRUE(IsFresh("a"));
  EXPECT_THAT(ids_.Begin("ann", "a", 1), StatusIs(Code::kAlreadyExists, _));
  EXPECT_THAT(ids_.Begin("ann", "a", 1), ReasonIs("IN_PROGRESS"));
}

TEST_F(RequestIdsTest, ARetryAfterItGetsTheSameAnswer) {
  EXPECT_TRUE(IsFresh("a"));
  const Answer answer = Text("bytes");
  ids_.Finish("ann", "a", answer);
  ASSERT_OK_AND_ASSIGN(const auto again, ids_.Begin("ann", "a", 1));
  EXPECT_EQ(std::get<Answer>(again), answer);
}

TEST_F(RequestIdsTest, AStreamedAnswerIsNotGivenAgain) {
  EXPECT_TRUE(IsFresh("a"));
  ids_.Finish("ann", "a", nullptr);
  EXPECT_THAT(ids_.Begin("ann", "a", 1), ReasonIs("DONE"));
}

TEST_F(RequestIdsTest, AnotherContentUnderTheSameIdIsWrong) {
  EXPECT_TRUE(IsFresh("a"));
  EXPECT_THAT(ids_.Begin("ann", "a", 2), StatusIs(Code::kInvalidArgument, _));
  ids_.Finish("ann", "a", Text("x"));
  EXPECT_THAT(ids_.Begin("ann", "a", 2), StatusIs(Code::kInvalidArgument, _));
}

TEST_F(RequestIdsTest, AFailedCallFreesItsId) {
  EXPECT_TRUE(IsFresh("a"));
  ids_.Forget("ann", "a");
  EXPECT_TRUE(IsFresh("a"));
}

TEST_F(RequestIdsTest, PrincipalsDoNotMeet) {
  EXPECT_TRUE(IsFresh("bc", "a"));
  EXPECT_TRUE(IsFresh("c", "ab"));
  EXPECT_TRUE(IsFresh("same", "ann"));
  ids_.Finish("ann", "same", Text("ann's"));
  EXPECT_TRUE(IsFresh("same", "bob"));
}

TEST_F(RequestIdsTest, OldAnswersAreForgotten) {
  EXPECT_TRUE(IsFresh("a"));
  ids_.Finish("ann", "a", Text("x"));
  clock_.Advance(absl::Seconds(59));
  EXPECT_FALSE(IsFresh("a"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(IsFresh("a"));
}

TEST_F(RequestIdsTest, TheOldestGoesWhenBytesOrEntriesAreFull) {
  EXPECT_TRUE(IsFresh("a"));
  ids_.Finish("ann", "a", Text("123456"));
  EXPECT_TRUE(IsFresh("b"));
  ids_.Finish("ann", "b", Text("12345"));
  EXPECT_EQ(ids_.usage().entries, 1u);
  EXPECT_EQ(ids_.usage().bytes, 5u);
  for (const std::string id : {"c", "d", "e", "f"}) {
    EXPECT_TRUE(IsFresh(id)) << id;
    ids_.Finish("ann", id, nullptr);
  }
  EXPECT_EQ(ids_.usage().entries, 4u);
  EXPECT_TRUE(IsFresh("b")) << "the oldest of five";
}

TEST_F(RequestIdsTest, OnePrincipalRunsHalfOfThemAtMost) {
  EXPECT_TRUE(IsFresh("a"));
  EXPECT_TRUE(IsFresh("b"));
  const absl::Status refused = ids_.Begin("ann", "c", 1).status();
  EXPECT_THAT(refused, StatusIs(Code::kResourceExhausted, _));
  EXPECT_EQ(DetailsOf(refused).metadata["value"], "2");
  EXPECT_TRUE(IsFresh("c", "bob"));
  ids_.Forget("ann", "b");
  EXPECT_TRUE(IsFresh("c"));
}

TEST_F(RequestIdsTest, WhoHasTheMostMakesRoom) {
  EXPECT_TRUE(IsFresh("a", "bob"));
  ids_.Finish("bob", "a", Text("b"));
  for (const std::string id : {"a", "b", "c", "d", "e"}) {
    EXPECT_TRUE(IsFresh(id)) << id;
    ids_.Finish("ann", id, Text("123"));
  }
  EXPECT_FALSE(IsFresh("a", "bob")) << "bob's one answer outlives ann's many";
}

TEST_F(RequestIdsTest, AnAnswerTooLargeToKeepIsDone) {
  EXPECT_TRUE(IsFresh("a"));
  ids_.Finish("ann", "a", Text("12345678901"));
  EXPECT_THAT(ids_.Begin("ann", "a", 1), ReasonIs("DONE"));
  EXPECT_EQ(ids_.usage().bytes, 0u);
}

}  // namespace
}  // namespace gridclock
