// What results say of a GPU that others use too.
#include <algorithm>
#include <cstdio>
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

// A process that was not there when a measurement began is there when it ends. The neighbour needs
// about a second to make its context, and computes from then on.
TEST_F(SharedGpuTest, G12_AProcessThatComesInTheMiddleOfAMeasurementIsSaidSo) {
  constexpr absl::Duration kBudget = absl::Seconds(10);
  Start("cuda:0");
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(Eventually([&] { return Measure(1).ok(); }, absl::Seconds(60)));

  v1::StreamRunRequest request;
  *request.mutable_header() = Made(1 << 28);
  v1::MeasureOptions& measure = *request.mutable_header()->mutable_measure();
  measure.set_method(v1::DEVICE_TIME);
  measure.set_budget_seconds(absl::ToDoubleSeconds(kBudget));
  measure.set_min_samples(1'000'000);  // So that nothing but the budget ends it.
  measure.set_max_samples(1'000'000);
  grpc::ClientContext context;
  RawStream stream(channel_, kStreamRunMethod, context);
  ASSERT_TRUE(stream.Write(request.SerializeAsString()));
  stream.WritesDone();
  absl::Time first_sample = absl::InfiniteFuture(), came = absl::InfiniteFuture();
  std::int64_t before = 0;
  std::optional<Neighbour> neighbour;
  v1::StreamRunResponse response;
  for (std::string message; stream.Read(&message);) {
    ASSERT_TRUE(response.ParseFromString(message));
    if (!response.has_samples() || response.samples().warmup() || neighbour) continue;
    first_sample = std::min(first_sample, absl::Now());
    before = response.samples().first() + response.samples().samples_ns_size();
    if (absl::Now() - first_sample < kBudget / 2) continue;
    ASSERT_OK_AND_ASSIGN(Neighbour started, Neighbour::Start());
    neighbour.emplace(std::move(started));
    came = absl::Now();
  }
  ASSERT_THAT(stream.Finish(), IsOk());
  ASSERT_TRUE(neighbour) << "the measurement ended before half of its budget";
  ASSERT_TRUE(neighbour->IsRunning()) << "gridclock-test-worker --bare spin ended by itself";
  ASSERT_GT(absl::Now() - came, kBudget / 4) << "too late to be there";
  const v1::RunSummary& summary = response.summary();
  const auto has = [&](v1::Flag flag) {
    return std::count(summary.flags().begin(), summary.flags().end(), flag) > 0;
  };
  std::printf("%ld samples alone, %ld in all; SHARED_DEVICE %d, SUSPECT %d, sharing unknown %d\n",
              static_cast<long>(before), static_cast<long>(summary.timing().samples_ns_size()),
              has(v1::SHARED_DEVICE), has(v1::SUSPECT), summary.timing().sharing_unknown());
  if (summary.timing().sharing_unknown() && !has(v1::SUSPECT)) {
    GTEST_SKIP() << "the driver shows no process ids here: results say that sharing is unknown";
  }
  EXPECT_TRUE(has(v1::SHARED_DEVICE) || has(v1::SUSPECT));
}

}  // namespace
}  // namespace gridclock
