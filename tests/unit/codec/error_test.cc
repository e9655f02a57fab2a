#include "proto/codec/error.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

DecodedError ThereAndBack(const absl::Status& status, const v1::RunSummary* summary = nullptr) {
  return DecodeError(status.code(), ErrorMessage(status), EncodeError(status, summary));
}

TEST(Error, DetailsArriveAsTheyWere) {
  const absl::Status status = WithDetails(absl::ResourceExhaustedError("the queue is full"),
                                          {.reason = "QUEUE_FULL",
                                           .field = "inputs[2]",
                                           .retry_after = absl::Milliseconds(1500),
                                           .metadata = {{"limit", "256"}}});
  const DecodedError got = ThereAndBack(status);
  EXPECT_EQ(got.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(got.status.message(), "the queue is full");
  const ErrorDetails details = DetailsOf(got.status);
  EXPECT_EQ(details.reason, "QUEUE_FULL");
  EXPECT_EQ(details.field, "inputs[2]");
  EXPECT_EQ(details.retry_after, absl::Milliseconds(1500));
  EXPECT_EQ(details.metadata.at("limit"), "256");
}

TEST(Error, ASummaryTravelsWithoutItsSamples) {
  v1::RunSummary summary;
  summary.set_kernel("square");
  for (int i = 0; i < 10'000; ++i) summary.mutable_timing()->add_samples_ns(i);
  const DecodedError got = ThereAndBack(absl::UnavailableError("lost"), &summary);
  ASSERT_TRUE(got.summary.has_value());
  EXPECT_EQ(got.summary->kernel(), "square");
  EXPECT_EQ(got.summary->timing().samples_ns_size(), 0);
}

TEST(Error, NothingIsLongerThanATrailerMayBe) {
  v1::RunSummary summary;
  for (int i = 0; i < 500; ++i) summary.add_device_kernels()->set_name("a kernel with a name");
  ErrorDetails details;
  details.reason = "R";
  for (int i = 0; i < 300; ++i) details.metadata[std::to_string(i)] = "some value";
  const absl::Status status =
      WithDetails(absl::InvalidArgumentError(std::string(100'000, 'm')), details);
  EXPECT_LE(EncodeError(status, &summary).size(), kMaxErrorDetails);
  EXPECT_LE(ErrorMessage(status).size(), kMaxErrorMessage);
  EXPECT_EQ(DetailsOf(ThereAndBack(status, &summary).status).reason, "R");
}

TEST(Error, AMessageIsCutBehindAWholeCharacter) {
  std::string text;
  while (text.size() < 2000) text += "\xe2\x82\xac";  // The euro sign, three bytes.
  const std::string cut = ErrorMessage(absl::InternalError(text));
  EXPECT_EQ(cut.substr(cut.size() - 4), " ...");
  EXPECT_EQ((cut.size() - 4) % 3, 0u);
}

TEST(Error, DetailsThatCannotBeReadAreLeftOut) {
  const DecodedError got = DecodeError(absl::StatusCode::kNotFound, "gone", "\xff\xff");
  EXPECT_THAT(got.status, StatusIs(absl::StatusCode::kNotFound, "gone"));
}

}  // namespace
}  // namespace gridclock
