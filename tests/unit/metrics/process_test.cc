#include "server/metrics/process.h"

#include <ctime>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;

constexpr char kSelf[] =
    "4242 (a) b (c) S 1 2 3 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 7 0 12000 1048576 256 "
    "18446744073709551615 1 1 0\n";
constexpr char kStat[] = "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n";

TEST(ProcessTest, ReadsFieldsBehindANameWithBrackets) {
  ASSERT_OK_AND_ASSIGN(const ProcessFacts facts, ParseProcessFacts(kSelf, kStat, 100, 4096));
  EXPECT_DOUBLE_EQ(facts.cpu_seconds, 2);
  EXPECT_DOUBLE_EQ(facts.start_unix_seconds, 1'700'000'120);
  EXPECT_DOUBLE_EQ(facts.threads, 7);
  EXPECT_DOUBLE_EQ(facts.virtual_bytes, 1'048'576);
  EXPECT_DOUBLE_EQ(facts.resident_bytes, 1'048'576);
}

TEST(ProcessTest, SaysWhatIsMissing) {
  EXPECT_THAT(ParseProcessFacts("", kStat, 100, 4096),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no name")));
  EXPECT_THAT(ParseProcessFacts("1 (x) S 1", kStat, 100, 4096),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("field 14")));
  EXPECT_THAT(ParseProcessFacts(kSelf, "cpu 1\n", 100, 4096),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("btime")));
}

class Values final : public ScrapeValues {
 public:
  void Set(Metric metric, LabelValues, double value) override { seen[metric] = value; }
  std::map<Metric, double> seen;
};

TEST(ProcessTest, KnowsThisProcess) {
  Values before;
  CollectProcess(before);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  Values after;
  CollectProcess(after);
  EXPECT_EQ(after.seen[Metric::kProcessOpenFds], before.seen[Metric::kProcessOpenFds] + 2);
  EXPECT_GT(after.seen[Metric::kProcessMaxFds], after.seen[Metric::kProcessOpenFds]);
  EXPECT_EQ(after.seen[Metric::kProcessThreads], 1);
  EXPECT_GT(after.seen[Metric::kProcessResident], 1e6);
  EXPECT_GT(after.seen[Metric::kProcessVirtual], after.seen[Metric::kProcessResident]);
  EXPECT_NEAR(after.seen[Metric::kProcessStart], static_cast<double>(std::time(nullptr)), 100);
  EXPECT_GE(after.seen[Metric::kProcessCpu], 0);
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace gridclock
