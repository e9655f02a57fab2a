#include "server/fleet/guest_memory.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::Each;
using Code = absl::StatusCode;

constexpr std::uint64_t kBytes = 256 * 1024;

// A job of one input and one output in a block of the arena at `offset`.
Job JobAt(JobId id, std::uint64_t offset, std::uint64_t bytes, const std::string& code = "code") {
  Job job;
  job.id = id;
  job.memory = {.offset = offset, .size = 2 * bytes};
  job.inputs.resize(1);
  job.inputs[0].memory = {.offset = offset, .size = bytes};
  job.outputs.resize(1);
  job.outputs[0].memory = {.offset = offset + bytes, .size = bytes};
  auto module = std::make_shared<ModuleCode>();
  module->cubin = code;
  auto program = std::make_shared<JobProgram>();
  program->modules = {{.id = "m1", .kind = ModuleKind::kCubin, .code = module},
                      {.id = "native", .kind = ModuleKind::kTestNative, .code = nullptr}};
  job.program = program;
  return job;
}

class GuestMemoryTest : public ::testing::Test {
 protected:
  std::span<std::byte> Theirs(const MemoryRange& range) { return guest_->arena().At(range); }

  Arena arena_ = *Arena::Create(kBytes, 0);
  std::unique_ptr<GuestMemory> guest_ = *GuestMemory::Create(kBytes);
};

TEST_F(GuestMemoryTest, InputsAndCodeGoInAndOutputsComeOut) {
  const Job job = JobAt(1, 8192, 4096);
  std::memset(arena_.At(job.inputs[0].memory).data(), 7, 4096);
  ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job, arena_));
  EXPECT_THAT(Theirs(placed.inputs[0].memory), Each(std::byte{7}));
  ASSERT_EQ(placed.module_code.size(), 2U);
  EXPECT_EQ(std::memcmp(Theirs(placed.module_code[0]).data(), "code", 4), 0);
  EXPECT_EQ(placed.module_code[0].offset % kTensorAlignment, 0U);
  EXPECT_EQ(placed.module_code[1].size, 0U);

  std::memset(Theirs(placed.outputs[0].memory).data(), 9, 4096);
  EXPECT_THAT(guest_->TakeOutputs(job, arena_), IsOk());
  EXPECT_THAT(arena_.At(job.outputs[0].memory), Each(std::byte{9}));
  EXPECT_THAT(arena_.At(job.inputs[0].memory), Each(std::byte{7}));
}

TEST_F(GuestMemoryTest, WhatTheGuestWritesElsewhereReachesNobody) {
  const Job job = JobAt(1, 8192, 4096);
  std::memset(arena_.At({.offset = 0, .size = kBytes}).data(), 5, kBytes);
  ASSERT_THAT(guest_->Place(job, arena_), IsOk());
  std::memset(Theirs({.offset = 0, .size = kBytes}).data(), 9, kBytes);
  EXPECT_THAT(guest_->TakeOutputs(job, arena_), IsOk());
  EXPECT_THAT(arena_.At({.offset = 0, .size = 8192 + 4096}), Each(std::byte{5}));
  EXPECT_THAT(arena_.At({.offset = 8192 + 8192, .size = 4096}), Each(std::byte{5}));
}

TEST_F(GuestMemoryTest, WhatIsNotReturnedIsNotCopied) {
  Job job = JobAt(1, 0, 4096);
  job.outputs[0].sink = SinkKind::kDiscard;
  ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job, arena_));
  std::memset(Theirs(placed.outputs[0].memory).data(), 9, 4096);
  EXPECT_THAT(guest_->TakeOutputs(job, arena_), IsOk());
  EXPECT_THAT(arena_.At(job.outputs[0].memory), Each(std::byte{0}));
}

TEST_F(GuestMemoryTest, CodeGoesAgainUntilAJobWithItRan) {
  ASSERT_OK_AND_ASSIGN(const Job first, guest_->Place(JobAt(1, 0, 64), arena_));
  ASSERT_OK_AND_ASSIGN(const Job second, guest_->Place(JobAt(2, 0, 64), arena_));
  EXPECT_EQ(second.module_code[0].size, 4U);
  guest_->Forget(1);  // It failed.
  guest_->NoteRan(2);
  guest_->Forget(2);
  ASSERT_OK_AND_ASSIGN(const Job third, guest_->Place(JobAt(3, 0, 64), arena_));
  EXPECT_EQ(third.module_code[0].size, 0U);
}

TEST_F(GuestMemoryTest, RoomIsWaitedForAndWhatNeverFitsIsRefused) {
  ASSERT_THAT(guest_->Place(JobAt(1, 0, kBytes / 4), arena_), IsOk());
  EXPECT_THAT(guest_->Place(JobAt(2, 0, kBytes / 4), arena_), ReasonIs("MEMORY_FULL"));
  guest_->Forget(1);
  EXPECT_THAT(guest_->Place(JobAt(2, 0, kBytes / 4), arena_), IsOk());
  guest_->Forget(2);
  const Job huge = JobAt(3, 0, kBytes / 2, std::string(5000, 'x'));
  EXPECT_THAT(guest_->Place(huge, arena_),
              StatusIs(Code::kResourceExhausted, ::testing::HasSubstr("guest_bytes")));
  EXPECT_THAT(guest_->Place(huge, arena_), ReasonIs("TOO_LARGE"));
}

TEST_F(GuestMemoryTest, NothingIsTakenOfAJobThatWasNotGiven) {
  EXPECT_THAT(guest_->TakeOutputs(JobAt(1, 0, 64), arena_),
              StatusIs(Code::kNotFound, ::testing::_));
}

}  // namespace
}  // namespace gridclock
