#include "server/core/read_gate.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using Entry = ReadGate::Entry;

class FakeReader : public ReadGate::Reader {
 public:
  explicit FakeReader(bool wants = true) : wants_(wants) {}
  bool TakeTurn() override {
    asked_ = true;
    return wants_;
  }
  bool asked() const { return asked_; }

 private:
  const bool wants_;
  bool asked_ = false;
};

std::shared_ptr<FakeReader> Reader(bool wants = true) {
  return std::make_shared<FakeReader>(wants);
}

// Two may read, and five may wait.
class ReadGateTest : public ::testing::Test {
 protected:
  static Limits OfTest() {
    Limits limits;
    limits.message_bytes = 15'000;
    limits.window_bytes = 20'000;
    return limits;
  }
  ReadGate gate_{200'000, OfTest()};
};

TEST_F(ReadGateTest, EachClientReadsAsManyAsItMayAndTheOthersWait) {
  const auto reader = Reader();
  EXPECT_EQ(gate_.Enter("ann", reader), Entry::kNow);
  EXPECT_EQ(gate_.Enter("ann", reader), Entry::kNow);
  EXPECT_EQ(gate_.Enter("ann", reader), Entry::kLater);
  EXPECT_EQ(gate_.Enter("bob", reader), Entry::kNow);
  EXPECT_FALSE(reader->asked());
}

TEST_F(ReadGateTest, TurnsComeInOrder) {
  gate_.Enter("ann", Reader());
  gate_.Enter("ann", Reader());
  const auto first = Reader(), second = Reader();
  gate_.Enter("ann", first);
  gate_.Enter("ann", second);
  gate_.Leave("ann");
  EXPECT_TRUE(first->asked());
  EXPECT_FALSE(second->asked());
  gate_.Leave("ann");
  EXPECT_TRUE(second->asked());
}

TEST_F(ReadGateTest, WhoIsGoneOrWantsToReadNoMoreGivesItsTurnToTheNext) {
  gate_.Enter("ann", Reader());
  gate_.Enter("ann", Reader());
  const auto unwilling = Reader(/*wants=*/false), last = Reader();
  gate_.Enter("ann", Reader());  // Gone.
  gate_.Enter("ann", unwilling);
  gate_.Enter("ann", last);
  gate_.Leave("ann");
  EXPECT_TRUE(unwilling->asked());
  EXPECT_TRUE(last->asked());
}

TEST_F(ReadGateTest, AFreePlaceIsFree) {
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(gate_.Enter("ann", Reader()), Entry::kNow);
    EXPECT_EQ(gate_.Enter("ann", Reader()), Entry::kNow);
    gate_.Leave("ann");
    gate_.Leave("ann");
  }
}

TEST_F(ReadGateTest, BeyondThoseThatMayWaitClientsAreRefused) {
  gate_.Enter("ann", Reader());
  gate_.Enter("ann", Reader());
  std::vector<std::shared_ptr<FakeReader>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(Reader());
    EXPECT_EQ(gate_.Enter("ann", waiting.back()), Entry::kLater);
  }
  EXPECT_EQ(gate_.Enter("ann", Reader()), Entry::kFull);
  EXPECT_THAT(gate_.Full(), ReasonIs("QUEUE_FULL"));
  EXPECT_EQ(gate_.Enter("ann", Reader(), /*has_read=*/true), Entry::kLater);
  EXPECT_EQ(gate_.Enter("bob", Reader()), Entry::kNow);
  waiting.pop_back();  // Who is gone waits no more.
  EXPECT_EQ(gate_.Enter("ann", waiting.front()), Entry::kLater);
}

TEST_F(ReadGateTest, HoweverLittleThereIsOneReadsAndOneWaits) {
  ReadGate gate(0, OfTest());
  const auto reader = Reader();
  EXPECT_EQ(gate.Enter("ann", reader), Entry::kNow);
  EXPECT_EQ(gate.Enter("ann", reader), Entry::kLater);
  EXPECT_EQ(gate.Enter("ann", reader), Entry::kFull);
}

// Reads as soon as it may, and counts itself while it does.
class CountedReader : public ReadGate::Reader {
 public:
  struct Counts {
    std::atomic<int> reading = 0, most = 0, turns = 0;
  };
  explicit CountedReader(Counts& counts) : counts_(counts) {}

  bool TakeTurn() override {
    const int now = ++counts_.reading;
    for (int most = counts_.most; now > most && !counts_.most.compare_exchange_weak(most, now);) {
    }
    ++counts_.turns;
    read_.store(true);
    read_.notify_one();
    return true;
  }
  void AwaitTurn() { read_.wait(false); }
  void Leave(ReadGate& gate, const std::string& client) {
    --counts_.reading;
    gate.Leave(client);
  }

 private:
  Counts& counts_;
  std::atomic<bool> read_ = false;
};

TEST_F(ReadGateTest, OfManyThreadsNoMoreThanMayReadAtOnceAndEachHasItsTurn) {
  constexpr int kClients = 2, kThreadsOfEach = 3, kRounds = 2'000;
  CountedReader::Counts counts[kClients];
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kClients * kThreadsOfEach; ++i) {
      threads.emplace_back([this, &of_client = counts[i % kClients],
                            client = std::string(i % kClients == 0 ? "ann" : "bob")] {
        for (int round = 0; round < kRounds; ++round) {
          const auto reader = std::make_shared<CountedReader>(of_client);
          const Entry entry = gate_.Enter(client, reader);
          if (entry == Entry::kNow) reader->TakeTurn();
          reader->AwaitTurn();
          reader->Leave(gate_, client);
        }
      });
    }
  }
  for (const CountedReader::Counts& of_client : counts) {
    EXPECT_EQ(of_client.turns, kThreadsOfEach * kRounds);
    EXPECT_LE(of_client.most, 2);
    EXPECT_EQ(of_client.reading, 0);
  }
}

}  // namespace
}  // namespace gridclock
