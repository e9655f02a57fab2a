// The worker is killed at random moments while clients call over the wire: each kill costs one call
// at most, that call gets the specified code, and every other result is what the client computes.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/raw_call.h"
#include "tests/support/server_process.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

constexpr int kKills = 20, kMostKills = 60;  // More where a busy machine runs calls less often.
constexpr std::size_t kLeastHits = 15;       // Kills that met a call that ran.
constexpr int kClients = 8;
constexpr int kLeastSquares = 120;  // Of the 320 calls and more that the kills wait for, half are.
constexpr std::uint64_t kSeed = 20240613;

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string AsStream(const v1::RunRequest& request) {
  v1::StreamRunRequest header;
  *header.mutable_header() = request;
  return header.SerializeAsString();
}

// The bytes of the output, however the call was made.
std::string OutputOf(const std::vector<std::string>& messages, bool streamed) {
  std::string bytes;
  for (const std::string& message : messages) {
    v1::RunResponse whole;
    v1::StreamRunResponse part;
    if (streamed) {
      EXPECT_TRUE(part.ParseFromString(message));
      bytes += part.chunk().data();
    } else if (whole.ParseFromString(message) && whole.outputs_size() > 0) {
      bytes = whole.outputs(0).data();
    }
  }
  return bytes;
}

// Half of a client's calls spin, which takes longest, so that most kills meet a call that runs; the
// others have a result that shows whether they ran once, and in place whether they ran twice. Half
// of each are streams.
class Client {
 public:
  Client(const std::string& address, std::uint64_t seed)
      : channel_(Connect(address)), random_(seed), thread_([this] { Run(); }) {}
  ~Client() {
    stop_ = true;
    thread_.join();
  }

  std::vector<absl::Status> lost() const {
    const std::scoped_lock lock(mutex_);
    return lost_;
  }
  int ended() const { return ended_; }
  int right_squares() const { return right_squares_; }

 private:
  void Run() {
    // Of a channel that is not there yet calls fail at once, by the thousand, whatever is killed.
    const auto limit = std::chrono::system_clock::now() + std::chrono::seconds(60);
    EXPECT_TRUE(channel_->WaitForConnected(limit));
    while (!stop_) {
      if (random_() % 2 != 0)
        Spin();
      else
        Square();
    }
  }
  void Spin() {
    v1::RunRequest request;
    request.set_kernel("spin");
    (*request.mutable_attributes())["ns"].set_i64(5'000'000 + random_() % 15'000'000);
    Call(request, {});
  }
  void Square() {
    std::vector<float> x(1 + random_() % 5000);
    for (float& value : x) value = static_cast<float>(random_() % 1000) - 500;
    v1::RunRequest request = InlineRequest("square", x);
    if (random_() % 2 == 0) request.add_in_place("y");
    for (float& value : x) value *= value;
    Call(request, x);
  }
  void Call(const v1::RunRequest& request, const std::vector<float>& want) {
    Judge(request, want);
    ++ended_;
  }
  void Judge(const v1::RunRequest& request, const std::vector<float>& want) {
    const bool streamed = random_() % 2 == 0;
    const RawResult result = streamed
                                 ? RawCall(channel_, kStreamRunMethod, {AsStream(request)})
                                 : RawCall(channel_, kRunMethod, {request.SerializeAsString()});
    if (!result.status.ok()) {
      const std::scoped_lock lock(mutex_);
      lost_.push_back(result.status);
      return;
    }
    ASSERT_EQ(FloatsOf(OutputOf(result.messages, streamed)), want);
    if (!want.empty()) ++right_squares_;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  std::mt19937_64 random_;
  mutable std::mutex mutex_;
  std::vector<absl::Status> lost_;  // Of mutex_.
  std::atomic<int> ended_{0};       // Calls whose end is in lost_, or was right.
  std::atomic<int> right_squares_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;  // Last: it uses the others.
};

TEST(Kills, E2_E3_EachCostsOneCallAtMostAndTheOthersAreRight) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  std::mt19937_64 random(kSeed);
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>(server->address(), random()));
  }
  const auto lost = [&] {
    std::vector<absl::Status> all;
    for (const auto& client : clients) {
      for (const absl::Status& status : client->lost()) all.push_back(status);
    }
    return all;
  };
  const auto ended = [&] {
    std::vector<int> each;
    each.reserve(clients.size());
    for (const auto& client : clients) each.push_back(client->ended());
    return each;
  };
  int kills = 0;
  while (kills < kKills || (lost().size() < kLeastHits && kills < kMostKills)) {
    ++kills;
    const auto before = lost().size();
    absl::SleepFor(absl::Microseconds(20'000 + random() % 30'000));
    const pid_t worker = server->Workers().at(0);
    ASSERT_GT(worker, 0);
    const std::vector<int> at_kill = ended();
    ASSERT_EQ(kill(worker, SIGKILL), 0);
    // Each client has ended the call that was on its way, and one that began after the kill.
    const auto all_went_on = [&] {
      const std::vector<int> now = ended();
      return std::equal(now.begin(), now.end(), at_kill.begin(),
                        [](int after, int before) { return after >= before + 2; });
    };
    ASSERT_TRUE(Eventually(all_went_on, absl::Seconds(60))) << kills;
    ASSERT_LE(lost().size() - before, 1u) << "kill " << kills << ": " << lost().back() << "\n"
                                          << server->Log();
  }
  for (const absl::Status& status : lost()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status, ReasonIs("WORKER_CRASHED"));
    EXPECT_EQ(DetailsOf(status).metadata["execution_state"], "UNKNOWN");
  }
  EXPECT_GE(lost().size(), kLeastHits) << "too few of " << kills << " met a running call";
  int squares = 0;
  for (const auto& client : clients) squares += client->right_squares();
  EXPECT_GE(squares, kLeastSquares) << "too few results were recomputed";
  RecordProperty("hits", static_cast<int>(lost().size()));
  RecordProperty("squares", squares);
}

TEST(Kills, AMetricIsReadBeforeTheServerEndsAndNoneThatIsNotThere) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  EXPECT_EQ(server->Metric("gridclock_worker_up{device=\"cpu\"}"), 1.0);
  EXPECT_EQ(server->Metric("gridclock_worker_state{device=\"cpu\",state=\"dead\""), 0.0);
  EXPECT_EQ(server->Metric("gridclock_device_temperature_celsius{device=\"cpu\""), std::nullopt);
}

TEST(Kills, AKilledServerLivesNoLongerThoughNobodyHasReapedIt) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  EXPECT_TRUE(Lives(server->pid()));
  EXPECT_LT(server->Wait(absl::ZeroDuration()), 0);
  server->Signal(SIGKILL);
  EXPECT_TRUE(Eventually([&] { return !Lives(server->pid()); }));
  EXPECT_EQ(kill(server->pid(), 0), 0) << "its process id is still there";
  EXPECT_EQ(server->Wait(), 128 + SIGKILL);
  EXPECT_FALSE(Lives(server->pid()));
}

}  // namespace
}  // namespace gridclock
