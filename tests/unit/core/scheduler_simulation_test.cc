// Random days of a scheduler, each from a seed: whatever happens, no job is lost or ended twice,
// bounds hold, and all memory comes back.
#include <algorithm>
#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/core/scheduler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_worker.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr std::uint64_t kPage = ArenaAllocator::kPage;

class Day {
 public:
  explicit Day(std::uint64_t seed) : random_(seed) {}

  void Live() {
    for (int step = 0; step < 120; ++step) {
      Step();
    }
    Evening();
  }

 private:
  struct Call {
    JobId id = 0;
    bool started = false;
    std::shared_ptr<FakeListener> listener;
  };

  std::uint64_t Roll(std::uint64_t sides) { return random_() % sides; }

  static Limits DayLimits() {
    Limits limits;
    limits.queue = 8;
    limits.client_queue = 6;
    limits.queue_seconds = 2;
    return limits;
  }

  void Step() {
    switch (Roll(11)) {
      case 0:
      case 1:
      case 2:
        return Submit();
      case 3:
      case 4:
        return StartOne();
      case 5:
      case 6:
        return FinishOne();
      case 7:
        return CancelOne();
      case 8:
        return Roll(3) == 0 ? Die() : Rise();
      case 9:
        return ArriveForOne();
      default:
        clock_.Advance(absl::Milliseconds(Roll(400)));
        scheduler_.Tick();
    }
  }

  void Submit() {
    Job job;
    job.device = "cpu";
    job.principal = std::string(1, static_cast<char>('a' + Roll(3)));
    job.memory.size = Roll(6) * kPage;
    job.arrived = clock_.Now();
    job.deadline =
        Roll(3) == 0 ? clock_.Now() + absl::Milliseconds(Roll(3000)) : absl::InfiniteFuture();
    job.kernel_time_limit = absl::Milliseconds(100 + Roll(1000));
    if (Roll(2) == 0) job.measure.emplace();
    job.host_memory = Roll(3) == 0;
    if (Roll(4) == 0) {
      job.inputs.resize(1);
      job.outputs.resize(1);
      job.outputs[0].in_place_of = 0;
      if (Roll(2) == 0) job.inputs[0].source = SourceKind::kStream;
    }
    Call call{.id = 0, .started = false, .listener = std::make_shared<FakeListener>()};
    const auto id = scheduler_.Submit(std::move(job), call.listener, Roll(2) == 0);
    if (!id.ok()) {
      EXPECT_EQ(call.listener->ends(), 0);
      return;
    }
    // Jobs that a lost worker held come back in any case; a new one finds room or is refused.
    EXPECT_LE(scheduler_.usage()["cpu"].queued, Scheduler::kMostQueues * 8);
    call.id = *id;
    calls_.push_back(call);
  }

  void StartOne() {
    for (Call& call : calls_) {
      if (call.started || !call.listener->accepted() || Roll(2) == 0) continue;
      call.started = true;
      return scheduler_.Start(call.id);
    }
  }

  void ArriveForOne() {
    if (calls_.empty()) return;
    scheduler_.Arrived(calls_[Roll(calls_.size())].id, {.input = 0, .bytes = 1 + Roll(9)});
  }

  void Rise() {
    if (worker_ != nullptr) return;
    worker_ = std::make_shared<FakeWorker>();
    done_ = 0;
    scheduler_.OnWorkerReady("cpu", worker_, ++generation_);
  }

  void FinishOne() {
    if (worker_ == nullptr) return;
    const std::vector<JobId> orders = worker_->orders();
    if (done_ >= orders.size()) return;
    worker_->Run(orders[done_], clock_.Now());
    if (Roll(3) == 0) return;
    worker_->Run(0, clock_.Now());
    EXPECT_TRUE(scheduler_.OnDone(orders[done_], generation_,
                                  {.status = absl::OkStatus(), .outcome = Outcome{}}));
    EXPECT_FALSE(scheduler_.OnDone(orders[done_], generation_,
                                   {.status = absl::OkStatus(), .outcome = Outcome{}}));
    ++done_;
  }

  void CancelOne() {
    if (calls_.empty()) return;
    scheduler_.Cancel(calls_[Roll(calls_.size())].id, absl::CancelledError("by the client"));
  }

  void Die() {
    if (worker_ == nullptr) return;
    if (!held_ && Roll(4) == 0) {
      held_ = true;
      scheduler_.OnKillFailed("cpu", {.reason = "hang", .detail = "still there"},
                              absl::UnavailableError("cannot be ended"));
      return;  // It goes on for a while.
    }
    held_ = false;
    scheduler_.OnWorkerLost("cpu", generation_,
                            {.reason = "signal",
                             .signal = SIGKILL,
                             .running = worker_->running().id,
                             .detail = "signal 9"});
    worker_ = nullptr;
  }

  void Evening() {
    for (int i = 0; i < 200 && !scheduler_.idle(); ++i) {
      Rise();
      for (Call& call : calls_) {
        if (!call.started && call.listener->accepted()) scheduler_.Start(call.id);
      }
      const auto orders = worker_->orders();
      for (; done_ < orders.size(); ++done_) {
        scheduler_.OnDone(orders[done_], generation_,
                          {.status = absl::OkStatus(), .outcome = Outcome{}});
      }
      if (!worker_->kills().empty()) Die();
      scheduler_.Tick();
    }
    EXPECT_TRUE(scheduler_.idle());
    EXPECT_EQ(arena_.used(), 0u);
    if (worker_ != nullptr && !held_ && worker_->kills().empty()) ExpectNothingKeptEarly();
    for (const Call& call : calls_) {
      EXPECT_EQ(call.listener->ends(), 1) << "job " << call.id;
      EXPECT_FALSE(call.listener->out_of_order()) << "job " << call.id;
    }
    EXPECT_EQ(observer_.count("finished"), static_cast<int>(calls_.size()));
  }

  // Of what a worker heard ahead of orders it got the order, or was told to forget it.
  void ExpectNothingKeptEarly() {
    const auto orders = worker_->orders(), cancels = worker_->cancels();
    const auto has = [](const std::vector<JobId>& ids, JobId id) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    for (const auto& [id, bytes] : worker_->arrivals()) {
      EXPECT_TRUE(has(orders, id) || has(cancels, id)) << "job " << id;
    }
  }

  std::mt19937_64 random_;
  FakeClock clock_;
  FakeObserver observer_;
  ArenaAllocator arena_{12 * kPage, 8 * kPage};
  Scheduler scheduler_{clock_, DayLimits(), arena_, observer_};
  std::vector<Call> calls_;
  std::shared_ptr<FakeWorker> worker_;
  std::uint64_t generation_ = 0;
  bool held_ = false;  // SIGKILL did not end the worker.
  std::size_t done_ = 0;
};

TEST(SchedulerSimulation, NoJobIsLostOrEndedTwice) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Day(seed).Live();
    if (testing::Test::HasFailure()) return;
  }
}

// With n principals that always have work, nobody waits longer than n - 1 jobs of others.
TEST(SchedulerSimulation, NobodyWaitsLongerThanOneJobOfEachOther) {
  FakeClock clock;
  FakeObserver observer;
  ArenaAllocator arena(kPage, kPage);
  Scheduler scheduler(clock, Limits(), arena, observer);
  std::map<JobId, std::string> owner;
  const auto submit = [&](const std::string& principal, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      Job job;
      job.device = "cpu";
      job.principal = principal;
      job.deadline = absl::InfiniteFuture();
      job.kernel_time_limit = absl::Seconds(1);
      job.measure.emplace();
      const auto id = scheduler.Submit(std::move(job), std::make_shared<FakeListener>(), false);
      owner[*id] = principal;
      scheduler.Start(*id);
    }
  };
  submit("flood", 100);
  submit("light", 20);
  submit("third", 20);
  auto worker = std::make_shared<FakeWorker>();
  scheduler.OnWorkerReady("cpu", worker, 1);
  int since_light = 0, light = 0;
  for (std::size_t i = 0; light < 20; ++i) {
    const JobId id = worker->orders().at(i);
    since_light = owner[id] == "light" ? 0 : since_light + 1;
    light += owner[id] == "light" ? 1 : 0;
    EXPECT_LE(since_light, 2);
    scheduler.OnDone(id, 1, {.status = absl::OkStatus(), .outcome = Outcome{}});
  }
}

// For ThreadSanitizer: clients, a worker's reader, a ticker and a killer at the same time.
TEST(SchedulerSimulation, ManyThreadsAgree) {
  constexpr int kCallsEach = 300;
  FakeClock clock;
  FakeObserver observer;
  ArenaAllocator arena(64 * kPage, 64 * kPage);
  Scheduler scheduler(clock, Limits(), arena, observer);
  std::atomic<bool> over{false};
  std::vector<std::shared_ptr<FakeListener>> listeners[3];

  const auto client = [&](int which) {
    for (int i = 0; i < kCallsEach; ++i) {
      Job job;
      job.device = "cpu";
      job.principal = std::string(1, static_cast<char>('a' + which));
      job.memory.size = kPage;
      job.deadline = absl::InfiniteFuture();
      job.kernel_time_limit = absl::Seconds(1);
      auto listener = std::make_shared<FakeListener>();
      const auto id = scheduler.Submit(std::move(job), listener, false);
      if (!id.ok()) continue;
      listeners[which].push_back(listener);
      scheduler.Start(*id);
      if (i % 7 == 0) scheduler.Cancel(*id, absl::CancelledError("by the client"));
    }
  };
  const auto fleet = [&] {
    for (std::uint64_t generation = 1; !over || !scheduler.idle(); ++generation) {
      auto worker = std::make_shared<FakeWorker>();
      scheduler.OnWorkerReady("cpu", worker, generation);
      std::size_t done = 0;
      for (int turn = 0; turn < 200; ++turn) {
        const auto orders = worker->orders();
        for (; done < orders.size(); ++done) {
          scheduler.OnDone(orders[done], generation,
                           {.status = absl::OkStatus(), .outcome = Outcome{}});
        }
        std::this_thread::yield();
      }
      scheduler.OnWorkerLost("cpu", generation,
                             {.reason = "signal", .signal = SIGKILL, .running = 0, .detail = ""});
    }
  };
  std::thread reader(fleet);
  std::thread ticker([&] {
    while (!over) scheduler.Tick();
  });
  std::thread clients[] = {std::thread(client, 0), std::thread(client, 1), std::thread(client, 2)};
  for (std::thread& thread : clients) thread.join();
  over = true;
  reader.join();
  ticker.join();
  for (const auto& mine : listeners) {
    for (const auto& listener : mine) {
      EXPECT_EQ(listener->ends(), 1);
      EXPECT_FALSE(listener->out_of_order());
    }
  }
  EXPECT_EQ(arena.used(), 0u);
}

}  // namespace
}  // namespace gridclock
