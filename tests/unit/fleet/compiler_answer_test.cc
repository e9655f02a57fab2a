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
    const char* reason;
    const char* text;
    Code code;
    CompileOutcome outcome;
  } cases[] = {
      {StatusOf(CompilerAnswer::TIME), "COMPILE_TIME", "longer than 7 s (limit compile_seconds)",
       Code::kDeadlineExceeded, CompileOutcome::kTime},
      {StatusOf(CompilerAnswer::MEMORY), "COMPILE_MEMORY", "compile_memory",
       Code::kResourceExhausted, CompileOutcome::kMemory},
      {StatusOf(CompilerAnswer::DONE, "", full.SerializeAsString()), "COMPILE_MEMORY",
       "compile_memory", Code::kResourceExhausted, CompileOutcome::kMemory},
      {StatusOf(CompilerAnswer::OUTPUT), "COMPILE_OUTPUT", "more output than is taken",
       Code::kResourceExhausted, CompileOutcome::kOutput},
      {StatusOf(CompilerAnswer::CRASHED, "signal 11"), "COMPILE_CRASHED",
       "crashed on this: signal 11", Code::kResourceExhausted, CompileOutcome::kCrashed},
      {StatusOf(CompilerAnswer::DONE, "", "\xff\xff"), "COMPILE_CRASHED", "crashed on this",
       Code::kResourceExhausted, CompileOutcome::kCrashed},
      {StatusOf(CompilerAnswer::NO_TOOL, "no nvdisasm"), "NO_TOOLCHAIN", "no nvdisasm",
       Code::kFailedPrecondition, CompileOutcome::kLost},
      {StatusOf(CompilerAnswer::CANCELLED), "", "cancelled", Code::kCancelled,
       CompileOutcome::kCancelled},
      {StatusOf(CompilerAnswer::INTERNAL, "no process"), "", "no process", Code::kInternal,
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
