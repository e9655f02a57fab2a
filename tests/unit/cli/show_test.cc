#include "client/cli/show.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>

#include "client/cli/json.h"
#include "client/cpp/run.h"

namespace gridclock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Values(Shape shape, const std::vector<float>& values) {
  return ValuesText({.dtype = DType::kF32, .shape = std::move(shape)},
                    std::as_bytes(std::span(values)));
}

TEST(ValuesTest, NestedBrackets) {
  EXPECT_EQ(Values({2, 2}, {1, 2.5, -3, 4}), "[[1, 2.5],\n [-3, 4]]");
  EXPECT_EQ(Values({}, {7}), "7");
  EXPECT_EQ(Values({0, 3}, {}), "[]");
}

TEST(ValuesTest, TheMiddleOfLongOnesIsLeftOut) {
  std::vector<float> values(20);
  std::iota(values.begin(), values.end(), 0.0F);
  EXPECT_EQ(Values({20}, values), "[0, 1, 2, ..., 17, 18, 19]");
}

TEST(ValuesTest, WholeNumbersOf64BitsAreExact) {
  const std::vector<std::int64_t> values = {9223372036854775807};
  EXPECT_EQ(ValuesText({.dtype = DType::kI64, .shape = {1}}, std::as_bytes(std::span(values))),
            "[9223372036854775807]");
}

TEST(SummaryTest, ALaunchSaysHowItWasTimedAndWhatToMistrust) {
  v1::RunSummary summary;
  summary.set_kernel("square");
  summary.set_variant("simd");
  summary.set_device("cpu");
  summary.mutable_timing()->set_method(v1::ISOLATED);
  summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  summary.mutable_timing()->mutable_statistics()->set_median_ns(1500);
  summary.add_device_kernels()->set_count(1);
  summary.set_peak_device_bytes(12'000'000);
  summary.add_flags(v1::NOISY);
  const std::string text = SummaryText(summary, {});
  EXPECT_THAT(text, HasSubstr("square.simd on cpu: 1.50 µs  (one launch, isolated)"));
  EXPECT_THAT(text, HasSubstr("\n  11.4 MiB of memory\n"));
  EXPECT_THAT(text, HasSubstr("flags: NOISY"));
}

TEST(SummaryTest, ACallOfSeveralLaunchesSaysHowMany) {
  v1::RunSummary summary;
  summary.set_kernel("cdist");
  summary.mutable_timing()->set_method(v1::ISOLATED);
  summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  summary.add_device_kernels()->set_count(2);
  summary.add_device_kernels()->set_count(1);
  EXPECT_THAT(SummaryText(summary, {}), HasSubstr("(one call of 3 launches, isolated)"));
  for (const std::int64_t count : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-5}}) {
    summary.add_device_kernels()->set_count(count);  // No honest server says so.
  }
  EXPECT_THAT(SummaryText(summary, {}), HasSubstr("(one call of 1000000000 launches, isolated)"));
}

TEST(SummaryTest, ACallThatLaunchedNothingSaysNothingOfLaunches) {
  v1::RunSummary summary;
  summary.mutable_timing()->set_method(v1::ISOLATED);
  summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  EXPECT_THAT(SummaryText(summary, {}), HasSubstr(" (isolated)"));
}

v1::RunSummary Measured(double median_ns) {
  v1::RunSummary summary;
  summary.set_device("cuda:0");
  v1::Timing& timing = *summary.mutable_timing();
  timing.set_stop(v1::Timing::INTERVAL);
  timing.set_warmup_flat(true);
  timing.mutable_statistics()->set_median_ns(median_ns);
  timing.mutable_statistics()->set_ci_low_ns(median_ns - 10);
  return summary;
}

TEST(SummaryTest, AMeasurementThatCannotTellWhoElseWasThereSaysSo) {
  v1::RunSummary summary = Measured(1500);
  EXPECT_EQ(FlagsText(summary, {}), "");
  EXPECT_EQ(ToJson(summary, false)["timing"]["sharing_unknown"], false);
  summary.mutable_timing()->set_sharing_unknown(true);
  EXPECT_EQ(ToJson(summary, false)["timing"]["sharing_unknown"], true);
  summary.add_flags(v1::NOISY);
  EXPECT_EQ(FlagsText(summary, {}), "NOISY, SHARING_UNKNOWN");
  summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  EXPECT_EQ(FlagsText(summary, {}), "NOISY");
}

TEST(SummaryTest, AMeasurementThatBeganBeforeTimesWereSteadySaysSo) {
  v1::RunSummary summary = Measured(1500);
  v1::Timing& timing = *summary.mutable_timing();
  timing.set_warmup_flat(false);
  EXPECT_EQ(FlagsText(summary, {}), "WARMUP_NOT_FLAT");
  for (const v1::Timing::Stop asked : {v1::Timing::SCHEDULE, v1::Timing::SINGLE_LAUNCH}) {
    timing.set_stop(asked);
    EXPECT_EQ(FlagsText(summary, {}), "");
  }
  timing.set_stop(v1::Timing::INTERVAL);
  summary.add_flags(v1::TEACHING_METHOD);
  EXPECT_EQ(FlagsText(summary, {}), "TEACHING_METHOD") << "it has no warm-up, or a short one";
}

TEST(SummaryTest, AMeasurementWhoseClockMovedSaysSo) {
  v1::RunSummary summary = Measured(1500);
  v1::Timing& timing = *summary.mutable_timing();
  timing.set_clock_before_hz(1.980e9);
  EXPECT_EQ(FlagsText(summary, {}), "") << "the other one is not known";
  timing.set_clock_after_hz(1.965e9);
  EXPECT_EQ(FlagsText(summary, {}), "") << "by less than a per cent";
  timing.set_clock_after_hz(1.95e9);
  EXPECT_EQ(FlagsText(summary, {}), "CLOCK_MOVED");
  EXPECT_EQ(ToJson(summary, false)["timing"]["clock_before_hz"], 1.980e9);
  EXPECT_EQ(ToJson(summary, false)["timing"]["clock_after_hz"], 1.95e9);
}

TEST(SummaryTest, ATimeComesWithItsDoubts) {
  v1::RunSummary summary = Measured(1500);
  EXPECT_EQ(TimeText(summary, std::nullopt, {}),
            "1.50 µs  (median of 0 on cuda:0, interval 1.49 µs .. -)");
  summary.add_flags(v1::IMPOSSIBLE);
  EXPECT_EQ(TimeText(summary, 3000, {}),
            "1.50 µs  (median of 0 on cuda:0, interval 1.49 µs .. -), -50.0 % against 3.00 µs  "
            "IMPOSSIBLE");
}

TEST(JsonTest, AnErrorWithoutEndIsANumberThatFailsEveryBound) {
  v1::RunSummary summary;
  summary.mutable_verification()->set_max_error(std::numeric_limits<double>::infinity());
  const Json told = Json::parse(Dump(ToJson(summary, /*with_samples=*/false)));
  EXPECT_GT(told["verification"]["max_error"].get<double>(), 1e300);
}

// U+009B begins a sequence on terminals of eight bits, U+202E turns what follows round.
TEST(JsonTest, NoTextSteersATerminal) {
  const std::string hostile = "\u009b31m \u202e \u2066 \x1b";
  const std::string line = Dump({{"name", hostile}});
  EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  EXPECT_EQ(Json::parse(line)["name"], hostile);
}

TEST(SummaryTest, VerifiedMeansAllOfIt) {
  v1::RunSummary summary;
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(10);
  v.set_total(10);
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("verified 10 of 10 values"));
  v.set_total(30);
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("partly verified (10 of 30 values)"));
  v.set_undecided(5);
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("partly verified"));
  summary.add_flags(v1::UNVERIFIED);
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("not verified: 5 of 10 values cannot be"));
  v.set_undecided(6);
  EXPECT_THAT(VerificationText(summary, {}),
              StartsWith("not verified: the tolerance of 6 of 10 values"));
  v.set_undecided(0);
  EXPECT_EQ(VerificationText(summary, {}), "not verified");
  v.set_launches(12);
  EXPECT_THAT(VerificationText(summary, {}), HasSubstr("all 12 launches had the same inputs"));
  v.set_fresh_launches(11);
  EXPECT_THAT(VerificationText(summary, {}), HasSubstr("those of another launch would pass"));
}

TEST(SummaryTest, OfEmptyOutputsNothingIsVerified) {
  v1::RunSummary summary;
  EXPECT_EQ(VerifiedWord(summary), "");
  summary.mutable_verification();
  EXPECT_EQ(VerificationText(summary, {}),
            "not verified: the outputs are empty, so nothing was compared");
  EXPECT_EQ(VerifiedWord(summary), "no");
}

TEST(SummaryTest, ValuesOfOneLaunchAreVerifiedThoughItsTimeIsNot) {
  v1::RunSummary summary;
  summary.add_flags(v1::UNVERIFIED);
  summary.mutable_timing()->set_stop(v1::Timing::SINGLE_LAUNCH);
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(10);
  v.set_total(10);
  v.set_launches(1);
  EXPECT_TRUE(IsTimeAloneInDoubt(summary));
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("verified 10 of 10 values of 1 launches"));
  EXPECT_THAT(VerificationText(summary, {}), HasSubstr("its time may be that of a result"));
  v.set_undecided(1);
  EXPECT_FALSE(IsTimeAloneInDoubt(summary));
  v.set_undecided(0);
  summary.mutable_timing()->clear_stop();
  EXPECT_FALSE(IsTimeAloneInDoubt(summary)) << "a measurement is of its time";
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("not verified"));
}

TEST(SummaryTest, ValuesBesideASlopeAreVerifiedThoughItsTimeIsNot) {
  v1::RunSummary summary;
  summary.add_flags(v1::UNVERIFIED);
  summary.mutable_timing()->set_method(v1::BACK_TO_BACK);
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(10);
  v.set_total(10);
  EXPECT_TRUE(IsTimeAloneInDoubt(summary));
  EXPECT_THAT(VerificationText(summary, {}), StartsWith("verified 10 of 10 values"));
  EXPECT_THAT(VerificationText(summary, {}), HasSubstr("no launch of the graphs"));
  v.set_launches(3);
  EXPECT_FALSE(IsTimeAloneInDoubt(summary)) << "submitted code may know that it is looked at";
}

TEST(SummaryTest, AMismatchStandsOutAndIsEscaped) {
  v1::RunSummary summary;
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(10);
  v.set_mismatches(2);
  v.set_first_mismatch("y[3]: \x1b[2J");
  EXPECT_THAT(VerificationText(summary, {}), HasSubstr("DIFFERS in 2 of 10 values: y[3]: \\x1b"));
  EXPECT_THAT(VerificationText(summary, {}), Not(HasSubstr("\x1b")));
}

TEST(SummaryTest, TheMismatchesBehindTheFirstHaveALineEach) {
  v1::RunSummary summary;
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(10);
  v.set_mismatches(3);
  v.set_first_mismatch("y[3]: want 1, got 2");
  v.add_more_mismatches("y[4]: \x1b[2J");
  v.add_more_mismatches("y[7]: want 0, got 9");
  EXPECT_THAT(VerificationText(summary, {}),
              StartsWith("DIFFERS in 3 of 10 values: y[3]: want 1, got 2\n"
                         "  then y[4]: \\x1b[2J\n"
                         "  then y[7]: want 0, got 9\n"
                         "  max abs "));
  EXPECT_EQ(ToJson(summary, false)["verification"]["more_mismatches"],
            Json::array({"y[4]: \x1b[2J", "y[7]: want 0, got 9"}));
}

TEST(SummaryTest, OfSubmittedCodeItSaysWhatWasComparedAndWhatWasForbidden) {
  v1::RunSummary summary;
  v1::Verification& v = *summary.mutable_verification();
  v.set_checked(130);
  v.set_total(130);
  v.set_launches(13);
  v.set_fresh_launches(12);
  EXPECT_THAT(VerificationText(summary, {}),
              StartsWith("verified 130 of 130 values of 13 launches, 12 of them on values that "
                         "nobody knew before"));
  EXPECT_TRUE(Passed(v));
  v.set_violations(3);
  v.set_first_violation("input 'x' was changed, in checked launch 1");
  EXPECT_EQ(VerificationText(summary, {}),
            "FORBIDDEN (3 times): input 'x' was changed, in checked launch 1");
  EXPECT_FALSE(Passed(v));
}

TEST(PhasesTest, TheWayToTheWorkerHasALineAndWhatTookNothingHasNone) {
  v1::RunSummary summary;
  const auto add = [&](v1::Phase::Kind kind, std::int64_t start, std::int64_t end) {
    v1::Phase* phase = summary.add_phases();
    phase->set_kind(kind);
    phase->set_start_ns(start);
    phase->set_end_ns(end);
  };
  add(v1::Phase::RECEIVED, 0, 1000);
  add(v1::Phase::QUEUED, 1000, 1000);
  add(v1::Phase::LAUNCHED, 3000, 6000);
  const std::string text = PhasesText(summary, {});
  EXPECT_THAT(text, HasSubstr("to the worker      2.00 µs"));
  EXPECT_THAT(text, HasSubstr("launched           3.00 µs"));
  EXPECT_THAT(text, Not(HasSubstr("queued")));
}

}  // namespace
}  // namespace gridclock::cli
