#include "server/core/reloader.h"

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Parts = std::vector<Reloader::Part>;

// What a reload ends with.
class Ending {
 public:
  Reloader::Done Done() {
    return [end = end_](const absl::StatusOr<Parts>& parts) { end->set_value(parts); };
  }
  absl::StatusOr<Parts> Get() { return end_->get_future().get(); }

 private:
  using End = std::promise<absl::StatusOr<Parts>>;
  const std::shared_ptr<End> end_ = std::make_shared<End>();  // Its thread outlasts Get().
};

Parts ReloadNow(Reloader& reloader) {
  Ending ending;
  EXPECT_THAT(reloader.Reload(ending.Done()), IsOk());
  const absl::StatusOr<Parts> parts = ending.Get();
  EXPECT_THAT(parts.status(), IsOk());
  return parts.value_or(Parts());
}

TEST(Reloader, ABrokenPartKeepsItsTimeAndHoldsUpNoOther) {
  absl::Time now = absl::FromUnixSeconds(1000);
  Reloader reloader([&] { return now; });
  absl::Status tokens = absl::OkStatus();
  int certificates = 0;
  reloader.Add("tokens", [&] { return tokens; });
  reloader.Add("certificates", [&] {
    ++certificates;
    return absl::OkStatus();
  });

  now += absl::Seconds(5);
  tokens = absl::InvalidArgumentError("line 2");
  const Parts parts = ReloadNow(reloader);
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].name, "tokens");
  EXPECT_THAT(parts[0].last, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 2")));
  EXPECT_EQ(parts[0].read, absl::FromUnixSeconds(1000));
  EXPECT_THAT(parts[1].last, IsOk());
  EXPECT_EQ(parts[1].read, absl::FromUnixSeconds(1005));
  EXPECT_EQ(certificates, 1);

  now += absl::Seconds(5);
  tokens = absl::OkStatus();
  ReloadNow(reloader);
  EXPECT_THAT(reloader.parts()[0].last, IsOk());
  EXPECT_EQ(reloader.parts()[0].read, absl::FromUnixSeconds(1010));
}

TEST(Reloader, WithoutPartsThereIsNothingToDo) {
  Reloader reloader([] { return absl::UnixEpoch(); });
  EXPECT_THAT(ReloadNow(reloader), SizeIs(0));
}

TEST(Reloader, WhoHearsOfTheEndMayAskForTheNext) {
  Reloader reloader([] { return absl::UnixEpoch(); });
  Ending second;
  ASSERT_THAT(reloader.Reload([&](const absl::StatusOr<Parts>&) {
    EXPECT_THAT(reloader.Reload(second.Done()), IsOk());
  }),
              IsOk());
  EXPECT_THAT(second.Get().status(), IsOk());
}

// Its reads end once they are let go.
class SlowReloader : public ::testing::Test {
 protected:
  void SetUp() override {
    reloader_.Add("tokens", [this] {
      if (reads_++ == 0) begun_.count_down();
      let_go_.wait();
      return absl::OkStatus();
    });
  }

  // Of a test that broke off too: the reloader's end waits for the read.
  void TearDown() override {
    if (!let_go_.try_wait()) let_go_.count_down();
  }

  // Returns when it reads.
  void BeginAndWait(Reloader::Done done) {
    ASSERT_THAT(reloader_.Reload(std::move(done)), IsOk());
    begun_.wait();
  }

  std::atomic<int> reads_{0};
  std::latch begun_{1}, let_go_{1};
  Reloader reloader_{[] { return absl::UnixEpoch(); }};
};

TEST_F(SlowReloader, WhileItReadsAnotherIsRefusedAndNobodyWaits) {
  Ending first;
  BeginAndWait(first.Done());
  EXPECT_TRUE(reloader_.is_reading());
  EXPECT_THAT(reloader_.parts(), SizeIs(1));
  const absl::Status refused =
      reloader_.Reload([](const absl::StatusOr<Parts>&) { FAIL() << "it was refused"; });
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("0 s ago still reads its files")));
  EXPECT_THAT(refused, ReasonIs("RELOADING"));
  let_go_.count_down();
  EXPECT_THAT(first.Get().status(), IsOk());
  EXPECT_EQ(reads_, 1);
  ReloadNow(reloader_);
}

TEST_F(SlowReloader, OfThoseThatFollowThereIsOne) {
  Ending first, last;
  BeginAndWait(first.Done());
  EXPECT_FALSE(reloader_.ReloadNowOrNext(
      [](const absl::StatusOr<Parts>&) { FAIL() << "the next takes its place"; }));
  EXPECT_FALSE(reloader_.ReloadNowOrNext(last.Done()));
  let_go_.count_down();
  EXPECT_THAT(first.Get().status(), IsOk());
  EXPECT_THAT(last.Get().status(), IsOk());
  EXPECT_EQ(reads_, 2);
  Ending now;
  EXPECT_TRUE(reloader_.ReloadNowOrNext(now.Done()));
  EXPECT_THAT(now.Get().status(), IsOk());
}

TEST_F(SlowReloader, OnceStoppedNobodyWaitsForIt) {
  Ending first;
  BeginAndWait(first.Done());
  const auto unheard = [](const absl::StatusOr<Parts>&) { FAIL() << "it was stopped"; };
  EXPECT_FALSE(reloader_.ReloadNowOrNext(unheard));
  reloader_.Stop(absl::UnavailableError("the end"));
  EXPECT_THAT(first.Get().status(), StatusIs(absl::StatusCode::kUnavailable, "the end"));
  EXPECT_TRUE(reloader_.is_reading());
  EXPECT_THAT(reloader_.Reload(unheard), StatusIs(absl::StatusCode::kUnavailable, "the end"));
  EXPECT_TRUE(reloader_.ReloadNowOrNext(unheard));
  let_go_.count_down();
  while (reloader_.is_reading()) std::this_thread::yield();
  EXPECT_EQ(reads_, 1);
}

}  // namespace
}  // namespace gridclock
