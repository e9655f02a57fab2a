// What results say of a GPU that others use too.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "tests/gpu/server_gpu_fixture.h"

namespace gridclock {
namespace {

// A process that is none of the server's keeps the GPU busy, 20 ms at a time, until it is ended.
class Neighbour {
 public:
  static absl::StatusOr<Neighbour> Start() {
    std::string arguments[] = {BinaryPath(kWorker), "--bare",  "spin",     "ns=20000000",
                               "--repeat",          "1000000", "--device", "cuda:0"};
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, pointers[0], nullptr, nullptr, pointers.data(), environ);
    if (error != 0) return absl::ErrnoToStatus(error, arguments[0]);
    return Neighbour(pid);
  }
  Neighbour(Neighbour&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~Neighbour() { End(); }

  // While it is paused it has its context, and computes nothing beyond the launch under way.
  void Pause() const { kill(pid_, SIGSTOP); }
  void Continue() const { kill(pid_, SIGCONT); }
  bool IsRunning() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }
  void End() {
    const pid_t pid = std::exchange(pid_, -1);
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

 private:
  explicit Neighbour(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

class SharedGpuTest : public OwnServerGpuTest {
 protected:
  struct Seen {
    int results = 0, shared = 0, unknown = 0, suspect = 0, noisy = 0;
    double median_ns = 0;  // Of the last result.
  };

  // Measures square so often, and counts what the results say of the device. By default it takes
  // half a millisecond.
  absl::StatusOr<Seen> Measure(int times, std::int64_t elements = 1 << 28) const {
    v1::RunRequest request = Made(elements);
    request.mutable_measure()->set_method(v1::DEVICE_TIME);
    request.mutable_measure()->set_budget_seconds(0.2);
    Seen seen;
    for (; seen.results < times; ++seen.results) {
      const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
      if (!result.status.ok()) return result.status;
      v1::RunResponse response;
      if (result.messages.empty() || !response.ParseFromString(result.messages[0])) {
        return absl::InternalError("no RunResponse came");
      }
      const auto has = [&](v1::Flag flag) {
        const auto& flags = response.summary().flags();
        return std::count(flags.begin(), flags.end(), flag) > 0;
      };
      seen.shared += has(v1::SHARED_DEVICE);
      seen.suspect += has(v1::SUSPECT);
      seen.noisy += has(v1::NOISY);
      seen.unknown += response.summary().timing().sharing_unknown();
      seen.median_ns = response.summary().timing().statistics().median_ns();
    }
    return seen;
  }
  // True once results carry the flag, or no longer do.
  bool ComesToBeShared(bool wanted) const {
    return Eventually(
        [&] {
          const auto seen = Measure(1);
          return seen.ok() && (seen->shared == 1) == wanted;
        },
        absl::Seconds(30));
  }
  static void Print(const char* when, const Seen& seen) {
    std::printf("%-24s %3d results: %d SHARED_DEVICE, %d sharing unknown, %d SUSPECT, %d NOISY\n",
                when, seen.results, seen.shared, seen.unknown, seen.suspect, seen.noisy);
  }
};

TEST_F(SharedGpuTest, G12_ASecondProcessOnTheGpuIsSaidSo) {
  constexpr int kTimes = 10;
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(Eventually([&] { return Measure(1).ok(); }, absl::Seconds(60)));

  ASSERT_OK_AND_ASSIGN(const Seen before, Measure(kTimes));
  Print("alone", before);
  EXPECT_EQ(before.shared, 0);
  EXPECT_EQ(before.suspect, 0);

  ASSERT_OK_AND_ASSIGN(Neighbour neighbour, Neighbour::Start());
  const bool told = ComesToBeShared(true);
  ASSERT_TRUE(neighbour.IsRunning()) << "gridclock-test-worker --bare spin ended by itself";
  ASSERT_OK_AND_ASSIGN(const Seen beside, Measure(kTimes));
  Print("beside another process", beside);
  if (!told && beside.unknown == kTimes) {
    GTEST_SKIP() << "the driver shows no process ids here: results say that sharing is unknown";
  }
  EXPECT_EQ(beside.shared, kTimes);
  // They take turns on the GPU: what runs for longer than a turn has times that are not its own.
  int doubted = 0;
  for (const int log : {29, 30, 31}) {
    ASSERT_OK_AND_ASSIGN(const Seen cut, Measure(kTimes, std::int64_t{1} << log));
    Print(absl::StrCat("beside it, 2^", log, " elements").c_str(), cut);
    EXPECT_EQ(cut.shared, kTimes);
    doubted += cut.suspect + cut.noisy;
  }
  EXPECT_GT(doubted, 0);

  neighbour.End();
  EXPECT_TRUE(ComesToBeShared(false));
  ASSERT_OK_AND_ASSIGN(const Seen after, Measure(kTimes));
  Print("alone again", after);
  EXPECT_EQ(after.shared, 0);
  EXPECT_EQ(after.suspect, 0);
}

// A measurement that another process came to in the middle of.
class LateNeighbourTest : public SharedGpuTest {
 protected:
  // Launches of 8 ms.
  static constexpr std::int64_t kLong = std::int64_t{1} << 32;

  struct Met {
    std::int64_t alone = 0;  // Samples before the neighbour came.
    v1::RunSummary summary;
    bool Has(v1::Flag flag) const {
      const auto& flags = summary.flags();
      return std::count(flags.begin(), flags.end(), flag) > 0;
    }
    std::int64_t samples() const { return summary.timing().samples_ns_size(); }
  };

  static v1::StreamRunRequest Measurement(std::int64_t elements, absl::Duration budget) {
    v1::StreamRunRequest request;
    *request.mutable_header() = Made(elements);
    request.mutable_header()->set_kernel_time_limit_seconds(60);
    v1::MeasureOptions& measure = *request.mutable_header()->mutable_measure();
    measure.set_method(v1::DEVICE_TIME);
    measure.set_budget_seconds(absl::ToDoubleSeconds(budget));
    measure.set_min_samples(1'000'000);  // So that nothing but the budget ends it.
    measure.set_max_samples(1'000'000);
    return request;
  }

  // Of square, by device_time. `come` is called once, after this part of the budget.
  void MeasureAs(const std::function<void()>& come, std::int64_t elements, absl::Duration budget,
                 double part, Met* met) {
    grpc::ClientContext context;
    RawStream stream(channel_, kStreamRunMethod, context);
    ASSERT_TRUE(stream.Write(Measurement(elements, budget).SerializeAsString()));
    stream.WritesDone();
    absl::Time first_sample = absl::InfiniteFuture(), came = absl::InfiniteFuture();
    v1::StreamRunResponse response;
    for (std::string message; stream.Read(&message);) {
      ASSERT_TRUE(response.ParseFromString(message));
      const bool waits = came == absl::InfiniteFuture();
      if (!response.has_samples() || response.samples().warmup() || !waits) continue;
      first_sample = std::min(first_sample, absl::Now());
      met->alone = response.samples().first() + response.samples().samples_ns_size();
      if (absl::Now() - first_sample < part * budget) continue;
      ASSERT_NO_FATAL_FAILURE(come());
      came = absl::Now();
    }
    ASSERT_THAT(stream.Finish(), IsOk());
    ASSERT_NE(came, absl::InfiniteFuture()) << "it ended before its neighbour was to come";
    ASSERT_GT(absl::Now() - came, 0.75 * (1 - part) * budget) << "too late to be there";
    met->summary = response.summary();
  }

  // True once the neighbour's turns show in the times.
  bool ComesToBeSlower(double alone_ns) const {
    return Eventually(
        [&] {
          const auto seen = Measure(1, kLong);
          return seen.ok() && seen->median_ns > 1.2 * alone_ns;
        },
        absl::Seconds(30));
  }

  void MeetLate(int round, int rounds) {
    ASSERT_OK_AND_ASSIGN(const Seen before, Measure(1, kLong));
    ASSERT_OK_AND_ASSIGN(Neighbour neighbour, Neighbour::Start());
    ASSERT_TRUE(ComesToBeSlower(before.median_ns)) << "the neighbour does not compute";
    neighbour.Pause();
    Met met;
    ASSERT_NO_FATAL_FAILURE(
        MeasureAs([&] { neighbour.Continue(); }, kLong, absl::Seconds(1.5), 0.6, &met));
    ASSERT_TRUE(neighbour.IsRunning()) << "gridclock-test-worker --bare spin ended by itself";
    neighbour.End();
    ASSERT_OK_AND_ASSIGN(const Seen after, Measure(1, kLong));
    std::printf(
        "late neighbour, round %d of %d: SUSPECT %d, %ld of %ld samples alone; without it %d of %d "
        "SUSPECT\n",
        round, rounds, met.Has(v1::SUSPECT), static_cast<long>(met.alone),
        static_cast<long>(met.samples()), before.suspect + after.suspect,
        before.results + after.results);
    EXPECT_GT(2 * met.alone, met.samples());
    EXPECT_TRUE(met.Has(v1::SUSPECT));
    EXPECT_EQ(before.suspect + after.suspect, 0);
  }
};

// Launches of half a millisecond end within a turn on the GPU: they are timed as if alone. The
// neighbour needs about a second to make its context, and computes from then on.
TEST_F(LateNeighbourTest, G12_AProcessThatComesInTheMiddleOfAMeasurementIsSaidSo) {
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(Eventually([&] { return Measure(1).ok(); }, absl::Seconds(60)));
  std::optional<Neighbour> neighbour;
  const auto come = [&] {
    ASSERT_OK_AND_ASSIGN(Neighbour started, Neighbour::Start());
    neighbour.emplace(std::move(started));
  };
  Met met;
  ASSERT_NO_FATAL_FAILURE(MeasureAs(come, 1 << 28, absl::Seconds(10), 0.5, &met));
  ASSERT_TRUE(neighbour->IsRunning()) << "gridclock-test-worker --bare spin ended by itself";
  if (met.summary.timing().sharing_unknown() && !met.Has(v1::SUSPECT)) {
    GTEST_SKIP() << "the driver shows no process ids here: results say that sharing is unknown";
  }
  EXPECT_TRUE(met.Has(v1::SHARED_DEVICE) || met.Has(v1::SUSPECT));
}

// A long launch is cut by the neighbour's turns. It computes once most samples are taken, so that
// their median is of a time that no method sees any more. GRIDCLOCK_GPU_ROUNDS: how often (1).
TEST_F(LateNeighbourTest, G12_AMedianFromBeforeTheOtherProcessIsSuspect) {
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(Eventually([&] { return Measure(1).ok(); }, absl::Seconds(60)));
  if (MemoryBytes() < std::uint64_t{10} * kLong) GTEST_SKIP() << "too little memory";
  const int rounds = RoundsOr(1);
  for (int round = 1; round <= rounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(MeetLate(round, rounds));
  }
}

}  // namespace
}  // namespace gridclock
