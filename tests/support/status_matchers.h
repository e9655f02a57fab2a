// EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("gelu")));
// EXPECT_THAT(status_or, IsOk());
#ifndef GRIDCLOCK_TESTS_SUPPORT_STATUS_MATCHERS_H_
#define GRIDCLOCK_TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace gridclock {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg);
  return StatusOf(arg).ok();
}

MATCHER_P2(StatusIs, code, message, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status;
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

MATCHER_P(ReasonIs, reason, "") {
  *result_listener << StatusOf(arg) << " with reason '" << DetailsOf(StatusOf(arg)).reason << "'";
  return DetailsOf(StatusOf(arg)).reason == reason;
}

}  // namespace gridclock

// ASSERT_OK_AND_ASSIGN(const auto spec, ParseKernelSpec(text));
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL(GC_CONCAT(gc_test_or_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                              \
  ASSERT_TRUE(tmp.ok()) << tmp.status();          \
  lhs = *std::move(tmp)

#endif  // GRIDCLOCK_TESTS_SUPPORT_STATUS_MATCHERS_H_
