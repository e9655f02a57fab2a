#include "server/fleet/guest_memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "absl/strings/str_cat.h"
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
  std::shared_ptr<Copiers> copiers_ = std::make_shared<Copiers>(1);
  std::unique_ptr<GuestMemory> guest_ = *GuestMemory::Create(kBytes, copiers_);
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

// The tensors of a list follow one another; what lies between them is no part of it.
TEST_F(GuestMemoryTest, AChecksumIsOfTheBytesThatWouldGoOverTheWire) {
  Job job = JobAt(1, 0, 4096);
  job.outputs[0].sink = SinkKind::kChecksum;
  job.outputs[0].value = {.is_list = true, .tensors = {{DType::kU8, {5}}, {DType::kU8, {70}}}};
  ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job, arena_));
  std::memset(Theirs(placed.outputs[0].memory).data(), 9, 4096);
  std::memset(&Theirs(placed.outputs[0].memory)[5], 1, 59);
  ASSERT_OK_AND_ASSIGN(const auto results, guest_->TakeOutputs(job, arena_));
  const std::string wire(75, 9);
  EXPECT_EQ(results.at(0).checksum, XXH3_64bits(wire.data(), wire.size()));
  job.outputs[0].sink = SinkKind::kInline;
  EXPECT_EQ(guest_->TakeOutputs(job, arena_)->at(0).checksum, std::nullopt);
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

Job WithVariables(Job job, const std::string& module, std::uint64_t bytes) {
  auto code = std::make_shared<ModuleCode>();
  code->cubin = "code";
  code->facts.global_bytes = bytes;
  auto program = std::make_shared<JobProgram>();
  program->modules = {{.id = module, .kind = ModuleKind::kCubin, .code = code}};
  job.program = program;
  return job;
}

// A guest loads code before a launch of it fails, and keeps it.
TEST_F(GuestMemoryTest, AGuestIsWornByCodeThatItWasGivenThoughNoneOfItRan) {
  const auto give = [this](JobId id, const std::string& module) {
    EXPECT_THAT(guest_->Place(WithVariables(JobAt(id, 0, 64), module, 0), arena_), IsOk());
    guest_->Forget(id);
  };
  for (JobId id = 1; id < GuestMemory::kMostModules; ++id) give(id, absl::StrCat("m", id));
  give(1000, "m1");  // Again.
  EXPECT_FALSE(guest_->worn());
  give(1001, "another");
  EXPECT_TRUE(guest_->worn());
}

// Of a module that did not run too: its guest may have loaded it.
TEST_F(GuestMemoryTest, AGuestWhoseModulesHaveLargeVariablesIsWorn) {
  constexpr std::uint64_t kHalf = GuestMemory::kMostHeldBytes / 2;
  for (JobId id = 1; id <= 3; ++id) {
    ASSERT_THAT(guest_->Place(WithVariables(JobAt(id, 0, 64), "m1", kHalf), arena_), IsOk());
    guest_->Forget(id);
  }
  EXPECT_FALSE(guest_->worn());
  ASSERT_THAT(guest_->Place(WithVariables(JobAt(4, 0, 64), "m2", kHalf), arena_), IsOk());
  EXPECT_TRUE(guest_->worn());
}

// One local memory serves all kernels of a process, and it is never given back.
TEST_F(GuestMemoryTest, AGuestWhoseThreadsHaveMuchLocalMemoryIsWorn) {
  constexpr std::uint64_t kHalf = GuestMemory::kMostHeldBytes / 2;
  Job job = JobAt(1, 0, 64);
  for (job.id = 1; job.id <= 3; ++job.id) {
    job.local_bytes = kHalf;
    ASSERT_THAT(guest_->Place(job, arena_), IsOk());
  }
  EXPECT_FALSE(guest_->worn());
  ASSERT_THAT(guest_->Place(WithVariables(JobAt(4, 0, 64), "m2", kHalf), arena_), IsOk());
  EXPECT_TRUE(guest_->worn());
}

TEST_F(GuestMemoryTest, MoreLocalMemoryThanAGuestShouldHoldWearsItAtOnce) {
  Job job = JobAt(1, 0, 64);
  job.local_bytes = GuestMemory::kMostHeldBytes;
  ASSERT_THAT(guest_->Place(job, arena_), IsOk());
  EXPECT_TRUE(guest_->worn());
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

// ---- Inputs that arrive before the order. ----

// Jobs whose code the guest has.
class EarlyInputsTest : public GuestMemoryTest {
 protected:
  static constexpr std::uint64_t kInput = 8000;

  EarlyInputsTest() {
    Run(JobAt(100, 0, 64));
    std::mt19937 random(1);
    for (std::byte& byte : arena_.At({.offset = 0, .size = kBytes})) {
      byte = static_cast<std::byte>(random());
    }
  }
  void Run(const Job& job) {
    ASSERT_THAT(guest_->Place(job, arena_), IsOk());
    guest_->NoteRan(job.id);
    guest_->Forget(job.id);
  }
  void Arrive(const Job& job, std::uint64_t bytes) {
    guest_->CopyEarly(job, {.input = 0, .bytes = bytes}, arena_);
  }
  void ExpectGets(const Job& job) {
    ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job, arena_));
    for (std::size_t i = 0; i < job.inputs.size(); ++i) {
      EXPECT_TRUE(
          std::ranges::equal(Theirs(placed.inputs[i].memory), arena_.At(job.inputs[i].memory)))
          << i;
    }
  }

  const Job job_ = JobAt(1, 8192, kInput);
};

TEST_F(EarlyInputsTest, AreThereBeforeTheOrderAndTheRestComesWithIt) {
  Arrive(job_, 1);
  Arrive(job_, 4099);
  Arrive(job_, 4099);
  const std::span<std::byte> source = arena_.At({.offset = 8192, .size = 4099});
  const std::vector<std::byte> first(source.begin(), source.end());
  std::ranges::fill(source, std::byte{0});  // What is there is not copied again.
  ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job_, arena_));
  const std::span<std::byte> got = Theirs(placed.inputs[0].memory);
  EXPECT_TRUE(std::ranges::equal(got.first(4099), first));
  EXPECT_TRUE(
      std::ranges::equal(got.subspan(4099), arena_.At(job_.inputs[0].memory).subspan(4099)));
}

TEST_F(EarlyInputsTest, OfEveryLengthAreWhatTheArenaHas) {
  for (const std::uint64_t bytes : {0, 1, 63, 4096, 7999, 8000}) {
    Job job = job_;
    job.id = 2 + bytes;
    Arrive(job, bytes / 3);
    Arrive(job, bytes);
    ExpectGets(job);
    guest_->Forget(job.id);
  }
}

TEST_F(EarlyInputsTest, EachOfSeveralIsCopiedByItself) {
  Job job = job_;
  job.inputs.push_back(job.inputs[0]);
  job.inputs[0].memory.size = 3000;
  job.inputs[1].memory = {.offset = 8192 + 3008, .size = 4000};
  guest_->CopyEarly(job, {.input = 1, .bytes = 4000}, arena_);
  guest_->CopyEarly(job, {.input = 0, .bytes = 7}, arena_);
  ExpectGets(job);
}

// Its code may write to all that is mapped beside it.
TEST_F(EarlyInputsTest, AreCopiedAgainWhereAnotherJobCameBetween) {
  Arrive(job_, kInput);
  ASSERT_THAT(guest_->Place(JobAt(2, 32768, 64), arena_), IsOk());
  std::ranges::fill(Theirs({.offset = 0, .size = kBytes}), std::byte{9});
  ExpectGets(job_);
}

TEST_F(EarlyInputsTest, GoOnFromTheBeginningAfterThat) {
  Arrive(job_, 5000);
  Run(JobAt(2, 32768, 64));
  std::ranges::fill(Theirs({.offset = 0, .size = kBytes}), std::byte{9});
  Arrive(job_, 6000);
  ExpectGets(job_);
}

TEST_F(EarlyInputsTest, TakeNoRoomFromAnOrder) {
  Job large = JobAt(1, 0, kBytes / 2);
  Arrive(large, 4096);
  EXPECT_EQ(guest_->allocator().used(), kBytes);
  EXPECT_TRUE(guest_->empty());
  Job other = large;
  other.id = 2;
  Arrive(other, 4096);  // No room: left.
  ExpectGets(other);
}

TEST_F(EarlyInputsTest, OfACallThatIsCancelledLeaveNothing) {
  Arrive(job_, 4096);
  guest_->DropEarly(1);
  EXPECT_EQ(guest_->allocator().used(), 0U);
}

// The thread that receives them would only have the rest later.
TEST_F(EarlyInputsTest, WhereThereAreFewCpusAreLeft) {
  guest_ = *GuestMemory::Create(kBytes, std::make_shared<Copiers>(0));
  Run(JobAt(100, 0, 64));
  Arrive(job_, 4096);
  EXPECT_EQ(guest_->allocator().used(), 0U);
  ExpectGets(job_);
}

TEST_F(EarlyInputsTest, OfCodeThatMustGoTooAreLeft) {
  Job job = job_;
  auto program = std::make_shared<JobProgram>(*job.program);
  program->modules[0].id = "m2";
  job.program = program;
  Arrive(job, 4096);
  EXPECT_EQ(guest_->allocator().used(), 0U);
  ExpectGets(job);
}

TEST_F(EarlyInputsTest, AreCopiedAPieceAtATime) {
  constexpr std::uint64_t kLarge = GuestMemory::kEarlyPiece + 4096;
  guest_ = *GuestMemory::Create(2 * kLarge, copiers_);
  Run(JobAt(100, 0, 64));
  const Arena arena = *Arena::Create(2 * kLarge, 0);
  const Job job = JobAt(1, 0, kLarge);
  const auto fill = [&](std::byte value) {
    std::ranges::fill(arena.At(job.inputs[0].memory), value);
  };
  fill(std::byte{1});
  guest_->CopyEarly(job, {.input = 0, .bytes = kLarge}, arena);
  fill(std::byte{2});
  ASSERT_OK_AND_ASSIGN(const Job placed, guest_->Place(job, arena));
  const std::span<std::byte> got = Theirs(placed.inputs[0].memory);
  EXPECT_EQ(std::ranges::count(got.first(GuestMemory::kEarlyPiece), std::byte{1}),
            GuestMemory::kEarlyPiece);
  EXPECT_EQ(std::ranges::count(got, std::byte{2}), 4096);
}

// ---- Launches that are checked. ----

// y = f(x) of 16 f32, x made from a seed.
Job CheckedJob() {
  Job job = JobAt(1, 8192, 64);
  const OperandValue value = {.is_list = false, .tensors = {{DType::kF32, {16}}}};
  job.inputs[0].value = job.outputs[0].value = value;
  job.inputs[0].source = SourceKind::kGenerate;
  job.inputs[0].generator = {.kind = GeneratorKind::kRandn, .seed = 3};
  job.outputs[0].name = std::string("y");
  auto program = std::make_shared<JobProgram>(*job.program);
  program->program.words = *ParseKernelSpec("mine x: f32[N] -> y: f32[N]");
  job.program = program;
  job.check.emplace();
  job.check->most_launches = 3;
  job.check->fresh = true;
  job.check->secrets = {11, 12, 13, 14};
  job.check->launch_bytes = 64;
  job.check->launches = {.offset = 16384, .size = 3 * 64};
  return job;
}

class CheckedLaunchTest : public GuestMemoryTest {
 protected:
  using Step = GuestMemory::Step;
  CheckedLaunchTest() { placed_ = *guest_->Place(job_, arena_); }

  absl::Status Fill(std::uint32_t index) {
    return guest_->CheckLaunch(job_, arena_, index, Step::kFill);
  }
  absl::Status FillSubmitted(std::uint32_t index) {
    return guest_->CheckLaunch(job_, arena_, index, Step::kFillSubmitted);
  }
  absl::Status Take(std::uint32_t index) {
    return guest_->CheckLaunch(job_, arena_, index, Step::kTake);
  }
  // With its margins.
  std::span<std::byte> Input() { return Theirs(placed_.inputs[0].memory); }
  std::span<std::byte> Output() { return Theirs(placed_.outputs[0].memory); }
  std::string Elements(std::span<std::byte> whole) {
    const auto inside = whole.subspan(kCheckMargin, 64);
    return std::string(reinterpret_cast<const char*>(inside.data()), inside.size());
  }

  const Job job_ = CheckedJob();
  Job placed_;
};

TEST_F(CheckedLaunchTest, EachHasValuesOfItsOwnAndTheLastTheSubmittedOnes) {
  EXPECT_EQ(Input().size(), 64 + 2 * kCheckMargin);
  EXPECT_EQ(placed_.inputs[0].generator, Generator());  // The guest learns no seed.
  EXPECT_THAT(placed_.check->secrets, ::testing::IsEmpty());
  const std::string warm_up = Elements(Input());
  ASSERT_THAT(Fill(0), IsOk());
  const std::string first = Elements(Input());
  ASSERT_THAT(Take(0), IsOk());
  ASSERT_THAT(FillSubmitted(1), IsOk());
  const std::string last = Elements(Input());
  std::string submitted(64, '\0');
  Generate(job_.inputs[0].generator, DType::kF32, 0, std::as_writable_bytes(std::span(submitted)));
  EXPECT_EQ(last, submitted);
  EXPECT_NE(first, submitted);
  EXPECT_NE(warm_up, submitted);
  EXPECT_NE(warm_up, first);
}

TEST_F(CheckedLaunchTest, OutputsAreRandomBeforeAndTakenAfterEach) {
  ASSERT_THAT(Fill(0), IsOk());
  const std::string poison = Elements(Output());
  std::memset(&Output()[kCheckMargin], 9, 64);
  ASSERT_THAT(Take(0), IsOk());
  ASSERT_THAT(FillSubmitted(1), IsOk());
  EXPECT_NE(Elements(Output()), poison);
  std::memset(&Output()[kCheckMargin], 7, 64);
  ASSERT_THAT(Take(1), IsOk());
  std::memset(&Output()[kCheckMargin], 5, 64);  // Too late.
  ASSERT_THAT(guest_->FinishCheck(job_, arena_, 1), IsOk());
  EXPECT_THAT(arena_.At(CheckedOutput(job_, 0, 0)), Each(std::byte{9}));
  EXPECT_THAT(arena_.At(CheckedOutput(job_, 1, 0)), Each(std::byte{7}));
  EXPECT_THAT(arena_.At(job_.outputs[0].memory), Each(std::byte{7}));
  EXPECT_THAT(job_.check->done->seed_changes, ::testing::ElementsAre(11, 0));
  EXPECT_EQ(job_.check->done->violations, 0);
}

TEST_F(CheckedLaunchTest, AChecksumIsOfTheBytesThatAreCompared) {
  Job job = job_;
  job.outputs[0].sink = SinkKind::kChecksum;
  ASSERT_THAT(FillSubmitted(0), IsOk());
  std::memset(&Output()[kCheckMargin], 7, 64);
  ASSERT_THAT(Take(0), IsOk());
  std::memset(&Output()[kCheckMargin], 5, 64);  // Too late.
  ASSERT_OK_AND_ASSIGN(const auto results, guest_->FinishCheck(job, arena_, 0));
  const std::string compared(64, 7);
  EXPECT_EQ(results.at(0).checksum, XXH3_64bits(compared.data(), compared.size()));
}

TEST_F(CheckedLaunchTest, WritesBesideOperandsAndToInputsAreFound) {
  ASSERT_THAT(Fill(0), IsOk());
  Output().back() ^= std::byte{1};
  Input()[kCheckMargin + 3] ^= std::byte{1};
  ASSERT_THAT(Take(0), IsOk());
  ASSERT_THAT(FillSubmitted(1), IsOk());
  ASSERT_THAT(Take(1), IsOk());
  ASSERT_THAT(guest_->FinishCheck(job_, arena_, 1), IsOk());
  EXPECT_EQ(job_.check->done->violations, 2);
  EXPECT_EQ(job_.check->done->first_violation, "input 'x' was changed, in checked launch 1");
}

TEST_F(CheckedLaunchTest, StepsOutOfTurnAreRefused) {
  const auto refused = StatusIs(Code::kInvalidArgument, ::testing::HasSubstr("out of turn"));
  EXPECT_THAT(Take(0), refused);
  EXPECT_THAT(Fill(1), refused);
  ASSERT_THAT(Fill(0), IsOk());
  EXPECT_THAT(Fill(0), refused);
  EXPECT_THAT(Fill(1), refused);
  EXPECT_THAT(Take(1), refused);
  ASSERT_THAT(Take(0), IsOk());
  EXPECT_THAT(Take(0), refused);
  ASSERT_THAT(FillSubmitted(1), IsOk());
  ASSERT_THAT(Take(1), IsOk());
  EXPECT_THAT(Fill(2), refused);  // The submitted values are the last.
}

TEST_F(CheckedLaunchTest, AsManySamplesAsCheckedLaunchesMustBeReported) {
  const auto refused = StatusIs(Code::kInvalidArgument, ::testing::HasSubstr("samples"));
  EXPECT_THAT(guest_->FinishCheck(job_, arena_, 0), refused);
  ASSERT_THAT(Fill(0), IsOk());
  ASSERT_THAT(Take(0), IsOk());
  EXPECT_THAT(guest_->FinishCheck(job_, arena_, 1), refused);  // None of the submitted values.
  ASSERT_THAT(FillSubmitted(1), IsOk());
  EXPECT_THAT(guest_->FinishCheck(job_, arena_, 1), refused);  // Not taken.
  ASSERT_THAT(Take(1), IsOk());
  EXPECT_THAT(guest_->FinishCheck(job_, arena_, 2), refused);
  EXPECT_THAT(guest_->FinishCheck(job_, arena_, 1), IsOk());
}

TEST_F(GuestMemoryTest, NothingIsTakenOfAJobThatWasNotGiven) {
  EXPECT_THAT(guest_->TakeOutputs(JobAt(1, 0, 64), arena_),
              StatusIs(Code::kNotFound, ::testing::_));
}

}  // namespace
}  // namespace gridclock
