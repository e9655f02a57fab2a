#include "server/fleet/compiler_answer.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using worker::v1::CompilerAnswer;
using Code = absl::StatusCode;

absl::Status StatusOf(CompilerAnswer::End end, const std::string& detail = "",
                      const std::string& result = "") {
  CompilerAnswer answer;
  answer.set_end(end);
  answer.set_detail(detail);
  answer.set_result(result);
  return ResultOf(answer, {.compile_seconds = 7}).status();
}

TEST(CompilerAnswer, EachEndHasAReason) {
  EXPECT_THAT(StatusOf(CompilerAnswer::DONE), IsOk());
  worker::v1::CompilerResult full;
  full.set_out_of_memory(true);
  const struct {
    absl::Status status;
    Code code;
    const char* reason;
    const char* text;
    CompileOutcome outcome;
  } cases[] = {
      {StatusOf(CompilerAnswer::TIME), Code::kDeadlineExceeded, "COMPILE_TIME",
       "longer than 7 s (limit compile_seconds)", CompileOutcome::kTime},
      {StatusOf(CompilerAnswer::MEMORY), Code::kResourceExhausted, "COMPILE_MEMORY",
       "compile_memory", CompileOutcome::kMemory},
      {StatusOf(CompilerAnswer::DONE, "", full.SerializeAsString()), Code::kResourceExhausted,
       "COMPILE_MEMORY", "compile_memory", CompileOutcome::kMemory},
      {StatusOf(CompilerAnswer::OUTPUT), Code::kResourceExhausted, "COMPILE_OUTPUT",
       "more output than is taken", CompileOutcome::kOutput},
      {StatusOf(CompilerAnswer::CRASHED, "signal 11"), Code::kResourceExhausted, "COMPILE_CRASHED",
       "crashed on this: signal 11", CompileOutcome::kCrashed},
      {StatusOf(CompilerAnswer::DONE, "", "\xff\xff"), Code::kResourceExhausted, "COMPILE_CRASHED",
       "crashed on this", CompileOutcome::kCrashed},
      {StatusOf(CompilerAnswer::NO_TOOL, "no nvdisasm"), Code::kFailedPrecondition, "NO_TOOLCHAIN",
       "no nvdisasm", CompileOutcome::kLost},
      {StatusOf(CompilerAnswer::CANCELLED), Code::kCancelled, "", "cancelled",
       CompileOutcome::kCancelled},
      {StatusOf(CompilerAnswer::INTERNAL, "no process"), Code::kInternal, "", "no process",
       CompileOutcome::kLost},
  };
  for (const auto& want : cases) {
    EXPECT_THAT(want.status, StatusIs(want.code, HasSubstr(want.text)));
    EXPECT_EQ(DetailsOf(want.status).reason, want.reason) << want.status;
    EXPECT_EQ(OutcomeOf(want.status, /*failed=*/false), want.outcome) << want.status;
  }
}

}  // namespace
}  // namespace gridclock
