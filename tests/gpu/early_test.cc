// A kernel that may start early waits for the one before it, in whichever code the GPU runs.
#include <span>

#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "tests/gpu/early_kernels.h"
#include "tests/gpu/gpu_fixture.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using Reader = absl::Status(const Call& call, Early* early);

absl::StatusOr<Early> ReadAfterALateWrite(Reader read, absl::Duration most) {
  Device& device = TheGpu();
  Call call;
  call.stream = StreamOf(device);
  GC_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(sizeof(Early)));
  auto* const early = static_cast<Early*>(buffer->data());
  GC_RETURN_IF_ERROR(device.Fill(early, std::byte{0}, sizeof(Early)));
  GC_RETURN_IF_ERROR(
      LaunchLateWrite(call, early, static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(most))));
  GC_RETURN_IF_ERROR(read(call, early));
  Early seen;
  GC_RETURN_IF_ERROR(device.CopyOut(std::as_writable_bytes(std::span(&seen, 1)), early));
  GC_RETURN_IF_ERROR(device.Synchronize());
  return seen;
}

TEST(Early, AKernelStartsBeforeTheOneBeforeHasEndedAndReadsWhatThatWrites) {
  SKIP_WITHOUT_GPU();
  // The second finds its code loaded.
  ASSERT_THAT(ReadAfterALateWrite(LaunchEarlyRead, absl::ZeroDuration()), IsOk());
  // However long this thread sleeps between the launches.
  constexpr absl::Duration kMost = absl::Seconds(1);
  ASSERT_OK_AND_ASSIGN(const Early early, ReadAfterALateWrite(LaunchEarlyRead, kMost));
  EXPECT_EQ(early.read, 1);
  EXPECT_EQ(early.started_ns < early.ended_ns, TheGpu().info().traits.sm >= 90);
}

// The driver translates such code for newer GPUs, which would start it early, and then nothing
// waits.
TEST(Early, CodeForOlderGpusStartsAfterTheOneBefore) {
  SKIP_WITHOUT_GPU();
  ASSERT_THAT(ReadAfterALateWrite(LaunchEarlyReadOfOlderCode, absl::ZeroDuration()), IsOk());
  constexpr absl::Duration kMost = absl::Milliseconds(20);
  ASSERT_OK_AND_ASSIGN(const Early early, ReadAfterALateWrite(LaunchEarlyReadOfOlderCode, kMost));
  EXPECT_EQ(early.read, 1);
  EXPECT_GE(early.started_ns, early.ended_ns);
}

}  // namespace
}  // namespace gridclock
