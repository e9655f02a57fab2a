// Measurements of a device that takes the time it is told to.
#ifndef GRIDCLOCK_TESTS_UNIT_TIMING_MEASURE_FIXTURE_H_
#define GRIDCLOCK_TESTS_UNIT_TIMING_MEASURE_FIXTURE_H_

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/timing/measure.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/timing/fake_device.h"

namespace gridclock {

class MeasureTest : public ::testing::Test {
 protected:
  absl::StatusOr<Measurement> Go(const MeasureOptions& options) {
    return Measure(device_, options,
                   {.launch = [this] { return launch_; },
                    .prepare =
                        [this] {
                          ++prepares_;
                          clock_.Advance(prepare_time_);
                          return absl::OkStatus();
                        },
                    .work = work_,
                    .steps = steps_},
                   {.clock = clock_,
                    .deadline = deadline_,
                    .kernel_time_limit = kernel_time_limit_,
                    .cancelled = [this] { return clock_.Now() >= cancelled_at_; },
                    .yields = [this] { return clock_.Now() >= yields_at_; },
                    .on_samples =
                        [this](std::int64_t first, std::span<const double> samples, bool warmup) {
                          auto& list = warmup ? live_warmups_ : live_;
                          EXPECT_EQ(first, static_cast<std::int64_t>(list.size()));
                          list.insert(list.end(), samples.begin(), samples.end());
                          batches_ += warmup ? 0 : 1;
                        }});
  }

  FakeClock clock_;
  FakeDevice device_{clock_};
  Work work_ = {.bytes = 1000, .flops = 10};
  const SampleSteps* steps_ = nullptr;
  absl::Status launch_;
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Time cancelled_at_ = absl::InfiniteFuture();
  absl::Time yields_at_ = absl::InfiniteFuture();
  absl::Duration kernel_time_limit_ = absl::InfiniteDuration();
  absl::Duration prepare_time_;
  int prepares_ = 0, batches_ = 0;
  std::vector<double> live_, live_warmups_;
};

}  // namespace gridclock

#endif  // GRIDCLOCK_TESTS_UNIT_TIMING_MEASURE_FIXTURE_H_
