// The worker is killed at random moments while clients call over the wire: each kill costs one call
// at most, that call gets the specified code, and every other result is what the client computes.
#include <algorithm>
#include <atomic>
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

// So many, and more until enough of them met a call that ran: a busy machine may leave the worker
// idle.
constexpr int kKills = 20;
constexpr int kMostKills = 60;
constexpr std::size_t kLeastHits = 15;
constexpr int kClients = 8;
constexpr std::uint64_t kSeed = 20240613;

std::vector<float> FloatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// Most of a client's calls spin, so that most kills meet a call that runs; the others have a result
// that shows whether they ran once, and in place whether they ran twice.
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

 private:
  void Run() {
    while (!stop_) {
      if (random_() % 3 != 0)
        Spin();
      else
        Square();
    }
  }
  void Spin() {
    v1::RunRequest request;
    request.set_kernel("spin");
    (*request.mutable_attributes())["ns"].set_i64(1'000'000 + random_() % 4'000'000);
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
    const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
    if (!result.status.ok()) {
      const std::scoped_lock lock(mutex_);
      lost_.push_back(result.status);
      return;
    }
    v1::RunResponse response;
    ASSERT_TRUE(response.ParseFromString(result.messages.at(0)));
    if (!want.empty()) {
      ASSERT_EQ(FloatsOf(response.outputs(0).data()), want);
    }
  }

  const std::shared_ptr<grpc::Channel> channel_;
  std::mt19937_64 random_;
  mutable std::mutex mutex_;
  std::vector<absl::Status> lost_;  // Of mutex_.
  std::atomic<int> ended_{0};       // Calls whose end is in lost_, or was right.
  std::atomic<bool> stop_{false};
  std::thread thread_;  // Last: it uses the others.
};

TEST(Kills, E2_E3_EachCostsOneCallAtMostAndTheOthersAreRight) {
  ASSERT_OK_AND_ASSIGN(const auto server, ServerProcess::Start());
  std::mt19937_64 random(kSeed);
  std::vector<std::unique_ptr<Client>> clients;
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
    for (const auto& client : clients) each.push_back(client->ended());
    return each;
  };
  const auto enough = [&](int kills) { return kills > kKills && lost().size() >= kLeastHits; };
  for (int kills = 1; kills <= kMostKills && !enough(kills); ++kills) {
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
    EXPECT_LE(lost().size() - before, 1u) << "kill " << kills;
  }
  for (const absl::Status& status : lost()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(status, ReasonIs("WORKER_CRASHED"));
  }
  EXPECT_GE(lost().size(), kLeastHits) << "too few met a running call";
}

}  // namespace
}  // namespace gridclock
