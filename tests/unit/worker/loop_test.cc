// The loop on a device with memory of its own: orders, and inputs that arrive before their orders.
#include "kernels/worker/loop.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/separate_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMemory = 96 * kMiB;
constexpr std::uint64_t kArena = 64 * kMiB;
constexpr std::uint64_t kGeneration = 3;

// Each look at the link between orders is a step of the test, which may send frames; it has ended
// when the worker would wait behind the last.
class ScriptedLink final : public Link {
 public:
  using Step = std::function<void()>;

  ScriptedLink(const StatusPage& page, FakeClock& clock) : page_(page), clock_(clock) {}

  void Then(Step step) { steps_.push_back(std::move(step)); }
  void SendToWorker(const worker::v1::FromServer& frame) {
    const std::string bytes = frame.SerializeAsString();
    ASSERT_TRUE(ends_.first.Send(std::as_bytes(std::span(bytes)), Wait::kNo).ok());
  }
  absl::StatusOr<PacketSocket::Read> Receive(PacketBatch& batch, Wait wait) override {
    if (page_.running != 0) return PacketSocket::Read::kNothing;
    if (next_ == steps_.size()) {
      clock_.Advance(absl::Milliseconds(1));  // It looks for so long before it waits.
      return wait == Wait::kYes ? PacketSocket::Read::kEnd : PacketSocket::Read::kNothing;
    }
    steps_[next_++]();
    return ends_.second.ReceiveBatch(batch, Wait::kNo);
  }
  bool Comes(absl::Duration within) override {
    if (next_ != steps_.size()) return true;
    clock_.Advance(within);
    return false;
  }
  absl::Status Send(std::span<const std::string> frames) override {
    for (const std::string& frame : frames) {
      worker::v1::ToServer& message = said_.emplace_back();
      EXPECT_TRUE(message.ParseFromString(frame));
    }
    return absl::OkStatus();
  }
  const std::vector<worker::v1::ToServer>& said() const { return said_; }

 private:
  const StatusPage& page_;
  FakeClock& clock_;
  std::pair<PacketSocket, PacketSocket> ends_ = *PacketSocket::Pair();
  std::vector<Step> steps_;
  std::size_t next_ = 0;
  std::vector<worker::v1::ToServer> said_;
};

// What the kernels of the running test work on, and found when they were launched.
struct World {
  SeparateDevice device{kMemory};
  std::uint64_t used_at_launch = 0;
  std::vector<std::size_t> under_way_at_launch;
  std::mutex in_use;
  bool in_use_at_launch = false;
  std::atomic<bool> asked{false};  // By another thread, which holds in_use.
  bool asked_at_launch = false;
};
World* world = nullptr;

// By another thread than that of the test, which may hold it itself.
bool IsHeld(std::mutex& mutex) {
  return std::async(std::launch::async,
                    [&] {
                      const std::unique_lock lock(mutex, std::try_to_lock);
                      return !lock.owns_lock();
                    })
      .get();
}

absl::Status Double(const Call& call) {
  world->used_at_launch = world->device.used();
  const auto* x = world->device.Reach<const float>(call.inputs[0].data[0]);
  auto* y = world->device.Reach<float>(call.outputs[0].data[0]);
  const std::int64_t n = Elements(call.InShape(0));
  for (std::int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
  return absl::OkStatus();
}

KernelDef Doubling() {
  KernelDef def;
  def.words = "x: T[*] -> y: T[*] over x where T in {f32}";
  def.reference = {
      .units = [](const Binding& b) { return Elements(b.inputs[0].tensors[0].shape); },
      .unit_elements = [](const Binding&) -> std::int64_t { return 1; },
      .compute = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                    std::int64_t unit, std::size_t,
                    std::span<double> result) { result[0] = 2 * in(0, unit); },
      .accumulation = [](const Binding&) -> std::int64_t { return 1; },
  };
  def.cuda = {{.name = "plain", .summary = "", .launch = &Double}};
  return def;
}

// Has no operands, so that nothing is copied or waited for before its launch.
KernelDef Nothing() {
  KernelDef def;
  def.words = "";
  def.cuda = {{.name = "plain", .summary = "", .launch = [](const Call&) {
                 world->under_way_at_launch.push_back(world->device.under_way());
                 world->in_use_at_launch = IsHeld(world->in_use);
                 world->asked_at_launch = world->asked_at_launch || world->asked;
                 return absl::OkStatus();
               }}};
  return def;
}

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    world = &world_;
    session_ = *Session::Create(device_, registry_, clock_, arena_);
    loop_ = std::make_unique<Loop>(Loop::Parts{.link = link_,
                                               .session = *session_,
                                               .page = page_,
                                               .clock = clock_,
                                               .arena = arena_,
                                               .dropped = dropped_,
                                               .in_use = world_.in_use});
  }

  // An order that launches `nothing`, while another thread asks until it is over, or for so long.
  void RunWhileSomebodyAsks(std::optional<MeasureOptions> measure, absl::Duration most) {
    std::promise<void> asks, answer;
    std::thread asker([&] {
      const std::lock_guard lock(world_.in_use);
      world_.asked = true;
      asks.set_value();
      answer.get_future().wait_for(absl::ToChronoMilliseconds(most));
      world_.asked = false;
    });
    asks.get_future().wait();
    Job job = Doubled(7, 64);
    job.kernel = "nothing";
    job.inputs.clear();
    job.outputs.clear();
    job.measure = measure;
    link_.Then(Order(job));
    EXPECT_THAT(loop_->Run(), IsOk());
    answer.set_value();
    asker.join();
    ASSERT_FALSE(link_.said().empty());
    EXPECT_EQ(link_.said().back().done().id(), 7U);
  }

  // Doubles the floats at the start of the arena into the memory behind them.
  static Job Doubled(JobId id, std::uint64_t bytes) {
    Job job;
    job.id = id;
    job.kernel = "double";
    job.variant = "plain";
    job.device = "cuda:0";
    job.host_memory = false;
    const OperandValue value = {
        .is_list = false,
        .tensors = {{.dtype = DType::kF32, .shape = {static_cast<std::int64_t>(bytes / 4)}}}};
    JobInput& input = job.inputs.emplace_back();
    input.value = value;
    input.source = SourceKind::kStream;
    input.memory = {.offset = 0, .size = bytes};
    JobOutput& output = job.outputs.emplace_back();
    output.name = "y";
    output.value = value;
    output.memory = {.offset = bytes, .size = bytes};
    job.deadline = absl::InfiniteFuture();
    job.kernel_time_limit = absl::Seconds(30);
    return job;
  }
  static Job Made(JobId id, std::uint64_t bytes) {
    Job job = Doubled(id, bytes);
    job.inputs[0].source = SourceKind::kGenerate;
    job.inputs[0].generator = {.kind = GeneratorKind::kOnes};
    job.inputs[0].memory = job.outputs[0].memory = {};
    job.outputs[0].sink = SinkKind::kDiscard;
    return job;
  }
  static WorkerArrival ArrivalOf(const Job& job, std::uint64_t bytes) {
    return {.id = job.id,
            .generation = kGeneration,
            .input = 0,
            .memory = job.inputs[0].memory,
            .bytes = bytes};
  }

  ScriptedLink::Step Order(const Job& job) {
    return [=, this] {
      worker::v1::FromServer frame;
      Encode(job, kGeneration, frame.mutable_order());
      link_.SendToWorker(frame);
    };
  }
  ScriptedLink::Step Arrive(const WorkerArrival& arrival) {
    return [=, this] {
      worker::v1::FromServer frame;
      Encode(arrival, frame.mutable_arrival());
      link_.SendToWorker(frame);
    };
  }
  ScriptedLink::Step Cancel(JobId id) {
    return [=, this] {
      worker::v1::FromServer frame;
      frame.mutable_cancel()->set_id(id);
      link_.SendToWorker(frame);
    };
  }
  // What the device was asked for by then.
  ScriptedLink::Step Look() {
    return [this] {
      copied_in_.push_back(device_.copied_in() / kMiB);
      used_.push_back(device_.used() / kMiB);
      under_way_.push_back(device_.under_way());
    };
  }

  std::span<float> Floats(std::uint64_t offset, std::uint64_t bytes) {
    return {reinterpret_cast<float*>(arena_.data() + offset), bytes / 4};
  }
  void Fill(std::uint64_t bytes, float first) {
    for (float& value : Floats(0, bytes)) value = first++;
  }
  void ExpectDoubled(std::uint64_t bytes, float first) {
    for (const float value : Floats(bytes, bytes)) {
      ASSERT_EQ(value, 2 * first);
      ++first;
    }
  }
  std::vector<JobId> Succeeded() const {
    std::vector<JobId> ids;
    for (const worker::v1::ToServer& message : link_.said()) {
      EXPECT_TRUE(message.has_done()) << message.ShortDebugString();
      ids.push_back(message.done().id());
    }
    return ids;
  }

  FakeClock clock_;
  World world_;
  SeparateDevice& device_ = world_.device;
  const Registry registry_ = *Registry::Create({{"double", Doubling()}, {"nothing", Nothing()}});
  std::vector<std::byte> arena_{kArena};
  std::unique_ptr<Session> session_;
  StatusPage page_;
  std::atomic<std::uint64_t> dropped_{0};
  ScriptedLink link_{page_, clock_};
  std::unique_ptr<Loop> loop_;
  std::vector<std::uint64_t> copied_in_, used_;  // In MiB.
  std::vector<std::size_t> under_way_;
};

TEST_F(LoopTest, CopiesWhatArrivesPieceByPieceAndTheOrderTheRest) {
  const Job job = Doubled(7, 12 * kMiB);
  Fill(12 * kMiB, 1);
  link_.Then(Arrive(ArrivalOf(job, 6 * kMiB)));
  link_.Then(Look());
  link_.Then(Look());
  link_.Then(Arrive(ArrivalOf(job, 10 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(job));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(copied_in_, ElementsAre(4, 6, 10));
  EXPECT_THAT(used_, Each(12));
  EXPECT_THAT(under_way_, Each(Le(1U)));
  EXPECT_THAT(Succeeded(), ElementsAre(7));
  ExpectDoubled(12 * kMiB, 1);
  EXPECT_EQ(device_.copied_in(), 12 * kMiB);
  EXPECT_EQ(link_.said()[0].done().peak_device_bytes(), 24 * kMiB);
  EXPECT_EQ(device_.used(), 0U);
  EXPECT_EQ(dropped_, 0U);
}

// For the process that serves the same device for another lane.
TEST_F(LoopTest, WhatOrdersLeftIsGivenBackOnceNoneComes) {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  device_.kept = 60 * kGiB;
  std::vector<std::uint64_t> kept;
  const auto look = [&] { kept.push_back(device_.kept); };
  link_.Then(Order(Made(7, 64)));
  link_.Then(look);
  link_.Then(Order(Made(8, 64)));
  link_.Then(look);

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(Succeeded(), ElementsAre(7, 8));
  EXPECT_THAT(kept, ElementsAre(60 * kGiB, 60 * kGiB));
  EXPECT_EQ(device_.kept, kGiB);
}

TEST_F(LoopTest, AnOrderWaitsForWhatAnotherProcessIsAboutToGiveBack) {
  device_.LendToOthers(kMemory - kMiB, /*looks=*/3);
  link_.Then(Order(Made(7, 8 * kMiB)));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(Succeeded(), ElementsAre(7));
}

TEST_F(LoopTest, AnOrderDoesNotWaitForeverForMemory) {
  device_.LendToOthers(kMemory - kMiB, /*looks=*/1'000);
  link_.Then(Order(Made(7, 8 * kMiB)));

  EXPECT_THAT(loop_->Run(), IsOk());

  ASSERT_EQ(link_.said().size(), 1U);
  EXPECT_TRUE(link_.said()[0].has_failed());
}

TEST_F(LoopTest, NobodyMayAskTheDeviceHowItIsWhileAnOrderRuns) {
  Job job = Doubled(7, 64);
  job.kernel = "nothing";
  job.inputs.clear();
  job.outputs.clear();
  link_.Then(Order(job));
  EXPECT_THAT(loop_->Run(), IsOk());
  EXPECT_THAT(Succeeded(), ElementsAre(7));
  EXPECT_TRUE(world_.in_use_at_launch);
  EXPECT_FALSE(IsHeld(world_.in_use));
}

// The driver may answer late, and only times would show that it is asked.
TEST_F(LoopTest, WhatIsNotMeasuredDoesNotWaitForWhoAsksTheDeviceHowItIs) {
  RunWhileSomebodyAsks(std::nullopt, absl::Minutes(1));
  EXPECT_TRUE(world_.asked_at_launch);
}

TEST_F(LoopTest, WhatIsMeasuredWaitsForWhoAsksTheDeviceHowItIs) {
  RunWhileSomebodyAsks(MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 0, .active = 1}},
                       absl::Milliseconds(100));
  EXPECT_FALSE(world_.asked_at_launch);
}

TEST_F(LoopTest, AnOrderThatCameMeanwhileRunsFirstAndMeetsNoCopyUnderWay) {
  const Job job = Doubled(7, 12 * kMiB);
  Job other = Doubled(8, 64);
  other.kernel = "nothing";
  other.inputs.clear();
  other.outputs.clear();
  Fill(12 * kMiB, 1);
  link_.Then(Arrive(ArrivalOf(job, 12 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(other));
  link_.Then(Order(job));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(under_way_, ElementsAre(1));
  EXPECT_THAT(world_.under_way_at_launch, ElementsAre(0));
  EXPECT_THAT(Succeeded(), ElementsAre(8, 7));
  ExpectDoubled(12 * kMiB, 1);
  EXPECT_EQ(device_.copied_in(), 12 * kMiB);
}

TEST_F(LoopTest, InPlaceAndVerifiedAsIfItHadBeenCopiedAtOnce) {
  Job job = Doubled(7, 8 * kMiB);
  job.outputs[0].memory = job.inputs[0].memory;
  job.outputs[0].in_place_of = 0;
  job.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 1, .active = 2}};
  job.verify = true;
  Fill(8 * kMiB, 1);
  link_.Then(Arrive(ArrivalOf(job, 8 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(job));

  EXPECT_THAT(loop_->Run(), IsOk());

  ASSERT_THAT(link_.said().back().has_done(), true);
  const worker::v1::Done& done = link_.said().back().done();
  EXPECT_EQ(done.verification().mismatches(), 0);
  EXPECT_EQ(done.verification().checked(), 2 * kMiB);
  EXPECT_EQ(done.peak_device_bytes(), 16 * kMiB);  // The operand, and its copy.
  float want = 1;
  for (const float value : Floats(0, 8 * kMiB)) {
    ASSERT_EQ(value, 2 * want);
    ++want;
  }
}

TEST_F(LoopTest, ACancelGivesTheMemoryBack) {
  const Job job = Doubled(7, 12 * kMiB);
  link_.Then(Arrive(ArrivalOf(job, 12 * kMiB)));
  link_.Then(Cancel(8));
  link_.Then(Look());
  link_.Then(Cancel(7));
  link_.Then(Look());

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(used_, ElementsAre(12, 0));
}

TEST_F(LoopTest, AnOrderThatNeedsTheMemoryGetsIt) {
  const Job job = Doubled(7, 24 * kMiB);
  Job large = Made(8, 80 * kMiB);
  large.outputs[0].in_place_of = 0;
  Fill(24 * kMiB, 1);
  link_.Then(Arrive(ArrivalOf(job, 20 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(large));
  link_.Then(Look());
  link_.Then(Order(job));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(used_, ElementsAre(24, 0));
  EXPECT_THAT(Succeeded(), ElementsAre(8, 7));
  ExpectDoubled(24 * kMiB, 1);
}

TEST_F(LoopTest, AMeasurementIsAloneOnTheDevice) {
  Job measured = Made(8, kMiB);
  measured.measure = MeasureOptions{.schedule = Schedule{.wait = 0, .warmup = 0, .active = 1}};
  link_.Then(Arrive(ArrivalOf(Doubled(7, 12 * kMiB), 12 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(measured));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(used_, ElementsAre(12));
  EXPECT_EQ(world_.used_at_launch, 2 * kMiB);
}

TEST_F(LoopTest, WhatMayNeverBecomeAnOrderGetsHalfOfTheDevice) {
  const Job first = Doubled(7, 30 * kMiB);
  Job second = Doubled(8, 30 * kMiB);
  link_.Then(Arrive(ArrivalOf(first, 4 * kMiB)));
  link_.Then(Arrive(ArrivalOf(second, 4 * kMiB)));
  link_.Then(Look());
  link_.Then(Order(second));

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_THAT(used_, ElementsAre(30));
  EXPECT_THAT(Succeeded(), ElementsAre(8));
}

// The memory of a job that ended is another's next, and holds other bytes by then.
TEST_F(LoopTest, CopiesAreTakenByTheirOwnOrderAlone) {
  const Job job = Doubled(7, 8 * kMiB);
  WorkerArrival another_id = ArrivalOf(job, 8 * kMiB), another_life = another_id;
  WorkerArrival another_place = another_id, another_input = another_id;
  another_id.id = 6;
  another_life.generation = kGeneration + 1;
  another_place.memory.offset = 8 * kMiB;
  another_input.input = 1;
  for (const WorkerArrival& arrival : {another_id, another_life, another_place, another_input}) {
    ScriptedLink link(page_, clock_);
    Loop loop({.link = link,
               .session = *session_,
               .page = page_,
               .clock = clock_,
               .arena = arena_,
               .dropped = dropped_,
               .in_use = world_.in_use});
    const std::uint64_t before = device_.copied_in();
    const auto send = [&](const std::function<void(worker::v1::FromServer&)>& write) {
      return [&link, write] {
        worker::v1::FromServer frame;
        write(frame);
        link.SendToWorker(frame);
      };
    };
    link.Then([this] { Fill(8 * kMiB, 1); });
    link.Then(send([&](auto& frame) { Encode(arrival, frame.mutable_arrival()); }));
    link.Then([] {});
    link.Then([&] {
      EXPECT_EQ(device_.copied_in() - before, 8 * kMiB);
      Fill(8 * kMiB, 100);
    });
    link.Then(send([&](auto& frame) { Encode(job, kGeneration, frame.mutable_order()); }));

    EXPECT_THAT(loop.Run(), IsOk());

    ASSERT_EQ(link.said().size(), 1U);
    EXPECT_TRUE(link.said()[0].has_done());
    ExpectDoubled(8 * kMiB, 100);
    EXPECT_EQ(device_.copied_in() - before, 16 * kMiB);
  }
}

TEST_F(LoopTest, ArrivalsThatCannotBeAreDropped) {
  const WorkerArrival good = ArrivalOf(Doubled(7, 8 * kMiB), kMiB);
  WorkerArrival nobodys = good, outside = good, askew = good, empty = good, too_long = good;
  nobodys.id = 0;
  outside.memory.offset = kArena - 4 * kMiB;
  askew.memory.offset = 4;
  empty.bytes = 0;
  too_long.bytes = 8 * kMiB + 1;
  WorkerArrival stale = good;
  stale.generation = kGeneration - 1;
  link_.Then(Order(Made(1, 64)));
  for (const WorkerArrival& bad : {nobodys, outside, askew, empty, too_long, stale}) {
    link_.Then(Arrive(bad));
  }
  link_.Then(Look());

  EXPECT_THAT(loop_->Run(), IsOk());

  EXPECT_EQ(dropped_, 6U);
  EXPECT_THAT(used_, ElementsAre(0));
}

// It did not begin, so the server sends it to the next worker.
TEST_F(LoopTest, AnOrderIsNotBlamedForADeviceThatWasLostBeforeIt) {
  link_.Then(Arrive(ArrivalOf(Doubled(7, 12 * kMiB), kMiB)));
  link_.Then([this] {
    device_.Break();
    Order(Made(8, kMiB))();
  });

  EXPECT_THAT(loop_->Run(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_TRUE(link_.said().empty());
  EXPECT_EQ(page_.running, 0U);
}

TEST_F(LoopTest, EndsWithADeviceThatIsLostBetweenOrders) {
  link_.Then(Arrive(ArrivalOf(Doubled(7, 12 * kMiB), 12 * kMiB)));
  link_.Then([this] { device_.Break(); });
  link_.Then([] { ADD_FAILURE() << "the loop went on"; });

  EXPECT_THAT(loop_->Run(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_EQ(page_.running, 0U);
}

}  // namespace
}  // namespace gridclock
