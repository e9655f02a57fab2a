#include "server/rpc/upload.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
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
  Upload upload(table_, memory_, job);
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
  Upload upload(table_, memory_, MakeJob());
  EXPECT_THAT(Take(upload, 4, "abcd"),
              StatusIs(Code::kInvalidArgument, HasSubstr("want 0, got 4")));
  EXPECT_THAT(Take(upload, 0, ""), StatusIs(Code::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(Take(upload, 0, "abcd", "z"), StatusIs(Code::kInvalidArgument, HasSubstr("'x'")));
  EXPECT_THAT(Take(upload, 0, std::string(kBytes + 1, 'a')),
              StatusIs(Code::kInvalidArgument, HasSubstr("ends at")));
  EXPECT_EQ(upload.Missing(), "input 'x': 0 of 32 bytes came");
  EXPECT_FALSE(upload.complete());
}

}  // namespace
}  // namespace gridclock
