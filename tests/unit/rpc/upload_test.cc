#include "server/rpc/upload.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Code = absl::StatusCode;

constexpr std::int64_t kElements = 8;
constexpr std::uint64_t kBytes = kElements * sizeof(float);

class UploadTest : public ::testing::Test {
 protected:
  UploadTest() {
    KernelSpec spec = *ParseKernelSpec("square x: f32[*] -> y: f32[*]");
    VariantSpec variant;
    variant.name = "simd";
    variant.device_kind = "cpu";
    spec.variants.push_back(variant);
    DeviceInfo device;
    device.name = device.traits.kind = "cpu";
    EXPECT_THAT(table_.Learn(device, {spec}), IsOk());
  }

  std::shared_ptr<const ActiveJob> MakeJob() {
    auto block = *allocator_.Reserve(ArenaAllocator::kPage, "ann");
    Job job;
    job.kernel = "square";
    JobInput& input = job.inputs.emplace_back();
    input.value = {.is_list = false, .tensors = {{DType::kF32, {kElements}}}};
    input.source = SourceKind::kStream;
    input.memory = {.offset = block.range().offset, .size = kBytes};
    return std::make_shared<const ActiveJob>(std::move(job), std::move(block));
  }

  absl::Status Take(Upload& upload, std::uint64_t offset, const std::string& bytes,
                    const std::string& name = "x") {
    const std::span<const std::byte> message = std::as_bytes(std::span(bytes));
    const StreamChunk chunk = {name, offset, {0, 0, bytes.size()}};
    return upload.Take(chunk, {&message, 1});
  }

  KernelTable table_{{"cpu"}};
  ArenaAllocator allocator_{16 * ArenaAllocator::kPage, 16 * ArenaAllocator::kPage};
  std::vector<std::byte> bytes_{16 * ArenaAllocator::kPage};
  const ArenaMemory memory_ = [this](const MemoryRange& range) {
    return std::span(bytes_).subspan(range.offset, range.size);
  };
};

// Else what still comes would be written into memory that is another job's by then.
TEST_F(UploadTest, KeepsTheMemoryOfAJobThatEndedUntilAllBytesHaveCome) {
  auto job = MakeJob();
  Upload upload(table_, memory_, job, nullptr);
  job.reset();
  EXPECT_EQ(allocator_.used(), ArenaAllocator::kPage);
  ASSERT_THAT(Take(upload, 0, std::string(kBytes / 2, 'a')), IsOk());
  EXPECT_EQ(allocator_.used(), ArenaAllocator::kPage);
  ASSERT_THAT(Take(upload, kBytes / 2, std::string(kBytes / 2, 'b')), IsOk());
  EXPECT_TRUE(upload.complete());
  EXPECT_EQ(allocator_.used(), 0u);
  EXPECT_EQ(bytes_[kBytes - 1], std::byte{'b'});
  EXPECT_THAT(Take(upload, kBytes, "more"), StatusIs(Code::kInvalidArgument, HasSubstr("32")));
}

TEST_F(UploadTest, RefusesChunksThatAreNotTheNextOfTheirInput) {
  Upload upload(table_, memory_, MakeJob(), nullptr);
  EXPECT_THAT(Take(upload, 4, "abcd"),
              StatusIs(Code::kInvalidArgument, HasSubstr("want 0, got 4")));
  EXPECT_THAT(Take(upload, 0, ""), StatusIs(Code::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(Take(upload, 0, "abcd", "z"), StatusIs(Code::kInvalidArgument, HasSubstr("'x'")));
  EXPECT_THAT(Take(upload, 0, std::string(kBytes + 1, 'a')),
              StatusIs(Code::kInvalidArgument, HasSubstr("ends at")));
  EXPECT_EQ(upload.Missing(), "input 'x': 0 of 32 bytes came");
  EXPECT_FALSE(upload.complete());
}

TEST_F(UploadTest, TellsOfEach16MiBWhileBytesAreStillToCome) {
  constexpr std::uint64_t kMiB = 1 << 20;
  KernelSpec spec = *ParseKernelSpec("pick small: u8[*], big: u8[*] -> y: u8[*]");
  spec.variants.emplace_back().name = "plain";
  spec.variants[0].device_kind = "cpu";
  DeviceInfo device;
  device.name = device.traits.kind = "cpu";
  ASSERT_THAT(table_.Learn(device, {spec}), IsOk());
  ArenaAllocator allocator(64 * kMiB, 64 * kMiB);
  std::vector<std::byte> bytes(64 * kMiB);
  const ArenaMemory memory = [&](const MemoryRange& range) {
    return std::span(bytes).subspan(range.offset, range.size);
  };
  Job job;
  job.kernel = "pick";
  const std::uint64_t sizes[] = {kMiB, 40 * kMiB + 7};
  for (const std::uint64_t size : sizes) {
    JobInput& input = job.inputs.emplace_back();
    input.value = {.is_list = false, .tensors = {{DType::kU8, {static_cast<std::int64_t>(size)}}}};
    input.source = SourceKind::kStream;
    input.memory = {.offset = (job.inputs.size() - 1) * 4 * kMiB,
                    .size = OperandBytes(input.value)};
  }
  std::vector<std::pair<std::size_t, std::uint64_t>> told;
  Upload upload(
      table_, memory, std::make_shared<const ActiveJob>(std::move(job), ArenaAllocator::Block()),
      [&](const InputArrival& arrival) { told.emplace_back(arrival.input, arrival.bytes / kMiB); });
  const std::string piece(4 * kMiB, 'a');
  for (std::uint64_t at = 0; at < 40 * kMiB; at += piece.size()) {
    ASSERT_THAT(Take(upload, at, piece, "big"), IsOk());
  }
  EXPECT_THAT(told, ElementsAre(Pair(1, 16), Pair(1, 32)));
  ASSERT_THAT(Take(upload, 40 * kMiB, std::string(7, 'a'), "big"), IsOk());
  EXPECT_THAT(told, ElementsAre(Pair(1, 16), Pair(1, 32), Pair(1, 40)));
  ASSERT_THAT(Take(upload, 0, std::string(kMiB, 'a'), "small"), IsOk());
  EXPECT_TRUE(upload.complete());
  EXPECT_EQ(told.size(), 3U);  // The order says the rest.
}

// Guests are near: what they wait for is copied in smaller parts.
TEST_F(UploadTest, TellsOfEach512KiBOfAProgram) {
  constexpr std::uint64_t kKiB = 1 << 10;
  ArenaAllocator allocator(2048 * kKiB, 2048 * kKiB);
  std::vector<std::byte> bytes(2048 * kKiB);
  const ArenaMemory memory = [&](const MemoryRange& range) {
    return std::span(bytes).subspan(range.offset, range.size);
  };
  Job job;
  auto program = std::make_shared<JobProgram>();
  program->program.words = *ParseKernelSpec("mine x: u8[N] -> y: u8[N]");
  job.program = program;
  JobInput& input = job.inputs.emplace_back();
  input.value = {.is_list = false, .tensors = {{DType::kU8, {1200 * kKiB}}}};
  input.source = SourceKind::kStream;
  input.memory = {.offset = 0, .size = 1200 * kKiB};
  std::vector<std::uint64_t> told;
  Upload upload(table_, memory,
                std::make_shared<const ActiveJob>(std::move(job), ArenaAllocator::Block()),
                [&](const InputArrival& arrival) { told.push_back(arrival.bytes / kKiB); });
  const std::string piece(300 * kKiB, 'a');
  for (std::uint64_t at = 0; at < 1200 * kKiB; at += piece.size()) {
    ASSERT_THAT(Take(upload, at, piece), IsOk());
  }
  EXPECT_TRUE(upload.complete());
  EXPECT_THAT(told, ElementsAre(600));
}

}  // namespace
}  // namespace gridclock
