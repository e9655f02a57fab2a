// What is made of CUPTI's records, with a library of that name beside this program that hands over
// what the test says.
#include "kernels/device/cuda/cupti.h"

#include <memory>
#include <string>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kernels/device/cuda/dynamic_library.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/device/fake_cupti.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CuptiTest : public ::testing::Test {
 protected:
  CuptiTest() {
    const std::string path = absl::StrCat(ProgramFolder(), "libcupti.so.", CUDART_VERSION / 1000);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    fake_ = reinterpret_cast<decltype(&TheFakeCupti)>(dlsym(library, "TheFakeCupti"))();
    *fake_ = FakeCupti();
    auto cupti = Cupti::Load();
    EXPECT_THAT(cupti, IsOk());
    cupti_ = *std::move(cupti);
    EXPECT_THAT(cupti_->Enable(KernelRecords::kConcurrent), IsOk());
  }

  absl::StatusOr<std::vector<DeviceActivity>> Record(absl::FunctionRef<absl::Status()> launch) {
    return cupti_->Record(launch, [](Cupti::Launch marked) { return marked(); });
  }

  FakeCupti* fake_ = nullptr;
  std::unique_ptr<Cupti> cupti_;
};

TEST_F(CuptiTest, RecordsWhatTheLaunchRanByStart) {
  ASSERT_OK_AND_ASSIGN(const auto ran, Record([&] {
                         fake_->Kernel("second", 2000, 2600);
                         fake_->Kernel("first", 1000, 1500);
                         fake_->Fill(3000, 3100);
                         return absl::OkStatus();
                       }));

  ASSERT_THAT(ran, SizeIs(3));
  EXPECT_EQ(ran[0].name, "first");
  EXPECT_EQ(ran[1].name, "second");
  EXPECT_EQ(ran[1].block[0], 32U);
  EXPECT_EQ(ran[2].name, "memset");
  EXPECT_EQ(SpanNs(ran), 2100);
}

TEST_F(CuptiTest, SaysWhatEachIsByItsRecordAndNotByItsName) {
  ASSERT_OK_AND_ASSIGN(const auto ran, Record([&] {
                         fake_->Kernel("memcpy", 1000, 1500);
                         fake_->Copy(2000, 2500);
                         fake_->Fill(3000, 3100);
                         return absl::OkStatus();
                       }));

  ASSERT_THAT(ran, SizeIs(3));
  EXPECT_EQ(ran[0].kind, ActivityKind::kKernel);
  EXPECT_EQ(ran[1].kind, ActivityKind::kCopy);
  EXPECT_EQ(ran[1].name, "memcpy");
  EXPECT_EQ(ran[2].kind, ActivityKind::kFill);
  EXPECT_EQ(CopiesAmong(ran), 1);
}

// A kernel's own end leaves out what it launched itself.
TEST_F(CuptiTest, AKernelEndsWithItsChildren) {
  ASSERT_OK_AND_ASSIGN(const auto ran, Record([&] {
                         fake_->Kernel("parent", 1000, 1500, 9000);
                         fake_->Kernel("known", 2000, 2600, 2600);
                         return absl::OkStatus();
                       }));
  ASSERT_THAT(ran, SizeIs(2));
  EXPECT_EQ(ran[0].end_ns, 9000U);
  EXPECT_EQ(SpanNs(ran), 8000);
}

TEST_F(CuptiTest, WhatWasRunBeforeIsNotOfTheLaunch) {
  fake_->Kernel("earlier", 10, 900);
  ASSERT_OK_AND_ASSIGN(const auto ran, Record([&] {
                         fake_->Kernel("ours", 1000, 1500);
                         return absl::OkStatus();
                       }));
  ASSERT_THAT(ran, SizeIs(1));
  EXPECT_EQ(ran[0].name, "ours");
}

// A blocking kernel stands before the launch, and the flush of the cache may come late.
TEST_F(CuptiTest, WhatIsRunBesideTheLaunchIsNotOfIt) {
  const auto launch = [&] {
    fake_->Kernel("ours", 1000, 1500);
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const auto ran, cupti_->Record(launch, [&](Cupti::Launch marked) {
    fake_->Kernel("blocker", 10, 999);
    const absl::Status status = marked();
    fake_->Kernel("after", 1600, 9000);
    return status;
  }));
  ASSERT_THAT(ran, SizeIs(1));
  EXPECT_EQ(ran[0].name, "ours");
}

TEST_F(CuptiTest, ARecordOfAnEarlierLaunchThatComesLateIsNotCounted) {
  fake_->id = 77;  // As if it had been marked.
  fake_->Kernel("late", 10, 900);
  fake_->id = 0;
  const auto kept = fake_->pending;
  fake_->pending.clear();
  ASSERT_OK_AND_ASSIGN(const auto ran, Record([&] {
                         fake_->pending = kept;
                         fake_->Kernel("ours", 1000, 1500);
                         return absl::OkStatus();
                       }));
  ASSERT_THAT(ran, SizeIs(1));
  EXPECT_EQ(ran[0].name, "ours");
}

TEST_F(CuptiTest, NothingRecordedIsNotATime) {
  EXPECT_THAT(Record([] { return absl::OkStatus(); }),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no record")));
  EXPECT_THAT(Record([] { return absl::OkStatus(); }).status(), ReasonIs("NO_RECORD"));
}

TEST_F(CuptiTest, LostRecordsAndMissingTimesAreErrors) {
  EXPECT_THAT(Record([&] {
                fake_->Kernel("ours", 1000, 1500);
                fake_->dropped = 2;
                return absl::OkStatus();
              }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost 2 records")));
  const auto untimed = Record([&] {
    fake_->Kernel("ours", 0, 0);
    return absl::OkStatus();
  });
  EXPECT_THAT(untimed,
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("could not time 'ours'")));
  EXPECT_THAT(untimed.status(), ReasonIs("RECORD_LOST"));
}

TEST_F(CuptiTest, TheLaunchsOwnErrorComesFirstAndTheMarkIsTakenOff) {
  EXPECT_THAT(Record([&] { return absl::InternalError("broken"); }),
              StatusIs(absl::StatusCode::kInternal, "broken"));
  EXPECT_EQ(fake_->id, 0U);
}

TEST_F(CuptiTest, IsOnOnlyWhileItIsWanted) {
  EXPECT_THAT(fake_->enabled, AllOf(SizeIs(6), Contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)));
  EXPECT_THAT(cupti_->Disable(), IsOk());
  EXPECT_THAT(fake_->enabled, IsEmpty());
  EXPECT_THAT(cupti_->Enable(KernelRecords::kSerial), IsOk());
  EXPECT_THAT(fake_->enabled, AllOf(SizeIs(6), Contains(CUPTI_ACTIVITY_KIND_KERNEL)));
  EXPECT_EQ(cupti_->enabled(), KernelRecords::kSerial);
  EXPECT_THAT(cupti_->Disable(), IsOk());
  EXPECT_THAT(fake_->enabled, IsEmpty());
  fake_->refused = CUPTI_ACTIVITY_KIND_MEMSET;
  EXPECT_THAT(cupti_->Enable(KernelRecords::kConcurrent),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused by the fake (39)")));
  EXPECT_THAT(fake_->enabled, IsEmpty());
  EXPECT_EQ(cupti_->enabled(), std::nullopt);
}

TEST_F(CuptiTest, WhatCouldNotBeSwitchedOffIsNotForgotten) {
  fake_->kept = CUPTI_ACTIVITY_KIND_MEMSET;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(cupti_->Disable(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("disable kind")))
        << i;
    EXPECT_EQ(cupti_->enabled(), std::nullopt) << "what is left does not record all";
  }
  fake_->kept = CUPTI_ACTIVITY_KIND_INVALID;
  EXPECT_THAT(cupti_->Disable(), IsOk());
  EXPECT_THAT(fake_->enabled, IsEmpty());
}

TEST_F(CuptiTest, OfAnotherCudaIsNotTrusted) {
  fake_->version = 28;
  EXPECT_THAT(Cupti::Load(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("version 28")));
}

}  // namespace
}  // namespace gridclock
