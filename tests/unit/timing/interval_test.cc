// How wide the interval of a median is, and when it is narrow enough.
#include <cmath>
#include <random>

#include "tests/unit/timing/measure_fixture.h"

namespace gridclock {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// 3,200 ns by a timer of steps of 128 ns are 3,136 to 3,264; more samples make that no narrower.
TEST_F(MeasureTest, TheIntervalKnowsTheTimersStepAndDoesNotWaitForLess) {
  device_.facts.host_memory = false;
  device_.facts.clock_step_ns = 128;
  device_.known.push_back(Method::kBackToBack);
  device_.duration_ns = [](auto, auto) { return 3'200; };

  ASSERT_OK_AND_ASSIGN(const Measurement m,
                       Go({.min_samples = 100, .relative_interval = 0.01, .schedule = {}}));
  live_.clear();
  live_warmups_.clear();
  ASSERT_OK_AND_ASSIGN(const Measurement slope,
                       Go({.method = Method::kBackToBack, .schedule = {}}));

  EXPECT_THAT(m.timing.samples_ns, SizeIs(100));
  EXPECT_THAT(m.flags, IsEmpty());
  EXPECT_EQ(m.timing.statistics.ci_low, 3'136);
  EXPECT_EQ(m.timing.statistics.ci_high, 3'264);
  EXPECT_EQ(slope.timing.statistics.ci_low, 3'200) << "a slope is over many launches";
}

// Times whose noise, of so much of 1 ms, lasts from one sample to the next as `rho` says.
struct Noise {
  double deviation = 0, rho = 0;
};

class IntervalTest : public MeasureTest {
 protected:
  struct Found {
    double covered = 0;  // The share of measurements whose interval held the true median.
    double samples = 0;  // Of one, in the mean.
  };
  Found Find(const Noise& noise) {
    constexpr int kSeeds = 300;
    Found found;
    for (int seed = 0; seed < kSeeds; ++seed) {
      const Measurement m = Once(noise, static_cast<std::uint64_t>(seed));
      const Statistics& s = m.timing.statistics;
      const bool holds = !s.ci_low || (*s.ci_low <= 1e6 && 1e6 <= *s.ci_high);
      found.covered += holds ? 1.0 / kSeeds : 0;
      found.samples += static_cast<double>(m.timing.samples_ns.size()) / kSeeds;
    }
    return found;
  }

 private:
  Measurement Once(const Noise& noise, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    double x = normal(engine);
    device_.duration_ns = [&](auto, auto) {
      x = noise.rho * x + std::sqrt(1 - noise.rho * noise.rho) * normal(engine);
      return 1e6 * (1 + noise.deviation * x);
    };
    device_.launches.clear();
    live_.clear();
    const auto m = Go({.warmup_limit = absl::ZeroDuration(), .schedule = {}});
    EXPECT_THAT(m, IsOk());
    return *m;
  }
};

TEST_F(IntervalTest, HoldsTheMedianOfIndependentSamplesAfterFewMoreThanItMust) {
  const Found quiet = Find({.deviation = 0.003}), noisy = Find({.deviation = 0.02});
  EXPECT_GE(quiet.covered, 0.93);
  EXPECT_LE(quiet.samples, 12);
  EXPECT_GE(noisy.covered, 0.91);
  EXPECT_LE(noisy.samples, 125) << "with no regard to their order it would be 103";
}

TEST_F(IntervalTest, HoldsTheMedianOfSamplesThatDrift) {
  EXPECT_GE(Find({.deviation = 0.003, .rho = 0.5}).covered, 0.9);
  EXPECT_GE(Find({.deviation = 0.02, .rho = 0.5}).covered, 0.92);
  EXPECT_GE(Find({.deviation = 0.02, .rho = 0.9}).covered, 0.9);
  // So few samples cannot tell all of it: without regard to their order it would be 0.45.
  EXPECT_GE(Find({.deviation = 0.003, .rho = 0.9}).covered, 0.75);
}

}  // namespace
}  // namespace gridclock
