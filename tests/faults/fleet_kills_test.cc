// The worker is killed at random moments under load: each kill costs one call at most, that call
// gets the specified code, and every other result is right, those of squares in place too, which
// would show a call that ran twice. Most of the worker's time goes into
// `spin`, so most kills meet a running call; a call is lost only if it was running, so the lost
// calls count those kills.
#include <algorithm>
#include <csignal>
#include <memory>
#include <random>
#include <vector>

#include <unistd.h>

#include "tests/faults/fleet_harness.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

// So many, and more until enough of them met a call that ran: a busy machine may leave the worker
// idle.
constexpr int kKills = 24;
constexpr int kMostKills = 72;
constexpr int kLeastHits = 15;
constexpr int kInFlight = 24;

struct Sent {
  std::vector<float> input;  // Of a square; empty: a spin.
  std::shared_ptr<RunningCall> call;
};

class Load {
 public:
  Load(FleetHarness& harness, std::uint64_t seed) : harness_(harness), random_(seed) {}

  // Keeps calls in flight, and looks at those that ended.
  void Turn() {
    std::erase_if(sent_, [this](const Sent& one) { return one.call->finished() && Judge(one); });
    while (sent_.size() < kInFlight) Send();
  }
  void Finish() {
    for (const Sent& one : sent_) {
      (void)one.call->Wait();
      Judge(one);
    }
    sent_.clear();
  }
  int lost() const { return lost_; }
  int right_squares() const { return right_squares_; }

 private:
  void Send() {
    if (random_() % 2 != 0) {
      const absl::Duration time = absl::Microseconds(2000 + random_() % 6000);
      sent_.push_back({{}, harness_.Spin(time)});
      return;
    }
    std::vector<float> input(1 + random_() % 5000);
    for (float& x : input) x = static_cast<float>(random_() % 1000) - 500;
    const bool in_place = random_() % 2 == 0;
    auto call = harness_.Square(input, in_place);
    sent_.push_back({std::move(input), std::move(call)});
  }
  bool Judge(const Sent& one) {
    const absl::Status status = one.call->Wait();
    if (!status.ok()) {
      EXPECT_THAT(status, ReasonIs("WORKER_CRASHED"));
      EXPECT_EQ(DetailsOf(status).metadata["execution_state"], "UNKNOWN");
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      ++lost_;
      return true;
    }
    std::vector<float> want = one.input;
    std::transform(want.begin(), want.end(), want.begin(), [](float x) { return x * x; });
    EXPECT_EQ(one.call->output(), want);
    if (!want.empty()) ++right_squares_;
    return true;
  }

  FleetHarness& harness_;
  std::mt19937_64 random_;
  std::vector<Sent> sent_;
  int lost_ = 0, right_squares_ = 0;
};

TEST(FleetKills, E2_E3_RandomKillsUnderLoadCostOneCallEachAtMost) {
  constexpr std::uint64_t kSeed = 20240229;
  FleetHarness harness({});
  ASSERT_TRUE(harness.WaitReady());
  Load load(harness, kSeed);
  std::mt19937_64 random(kSeed);
  const MonotonicClock clock;
  int kills = 0;
  while (kills < kKills || (load.lost() < kLeastHits && kills < kMostKills)) {
    ++kills;
    const int lost_before = load.lost();
    const absl::Time moment = clock.Now() + absl::Microseconds(random() % 20'000);
    while (clock.Now() < moment) load.Turn();
    const pid_t pid = harness.WorkerPid();
    ASSERT_GT(pid, 0);
    kill(pid, SIGKILL);
    ASSERT_TRUE(Eventually([&] {
      load.Turn();
      return harness.observer().count("up") > kills;
    })) << "kill "
        << kills;
    load.Turn();
    EXPECT_LE(load.lost() - lost_before, 1) << "kill " << kills;
  }
  load.Finish();
  EXPECT_LE(load.lost(), kills);
  EXPECT_GE(load.lost(), kLeastHits) << "too few kills met a running call";
  EXPECT_GT(load.right_squares(), kills);
  EXPECT_EQ(harness.observer().count("lost signal"), kills);
  EXPECT_TRUE(Eventually([&] { return harness.allocator().used() == 0; }));
  EXPECT_TRUE(harness.scheduler().idle());
}

}  // namespace
}  // namespace gridclock
