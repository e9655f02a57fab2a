// What the errors of the CUDA runtime mean here. Needs no GPU.
#include "kernels/device/cuda/cuda_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/device/launch_status.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CudaStatus, SaysWhatWasTriedAndWhatTheRuntimeCallsIt) {
  EXPECT_THAT(CudaStatus(cudaSuccess, "copy in"), IsOk());
  EXPECT_THAT(CudaStatus(cudaErrorMemoryAllocation, "copy in"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("copy in: cudaErrorMemoryAllocation (2)")));
}

// By the numbers of errors after which, as the runtime's documentation says, the process must be
// relaunched. An external device (911) is none that a kernel broke.
TEST(CudaStatus, G1_AfterTheseNoKernelRunsInTheProcessAgain) {
  for (const int error : {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721}) {
    const auto fault = static_cast<cudaError_t>(error);
    EXPECT_TRUE(IsSticky(fault)) << error;
    EXPECT_THAT(CudaStatus(fault, "launch"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                      HasSubstr(absl::StrCat("(", error, ")"))));
    EXPECT_THAT(CudaStatus(fault, "launch"), ReasonIs("KERNEL_FAULT")) << error;
  }
  for (const int error : {214, 220, 709, 806, 810, 911, 999}) {
    const auto fault = static_cast<cudaError_t>(error);
    EXPECT_TRUE(IsSticky(fault)) << error;
    EXPECT_THAT(CudaStatus(fault, "launch"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(absl::StrCat("(", error, ")"))));
    EXPECT_THAT(CudaStatus(fault, "launch"), ReasonIs("DEVICE_FAULT")) << error;
  }
  for (const cudaError_t error : {cudaSuccess, cudaErrorInvalidValue, cudaErrorMemoryAllocation,
                                  cudaErrorInvalidConfiguration, cudaErrorNotReady}) {
    EXPECT_FALSE(IsSticky(error)) << error;
  }
}

// The client cannot choose a shape: that there is a bad one is no fault of the request.
TEST(CudaStatus, G2_AShapeThatTheDeviceDoesNotTakeIsOurError) {
  for (const cudaError_t error :
       {cudaErrorInvalidConfiguration, cudaErrorLaunchOutOfResources,
        cudaErrorCooperativeLaunchTooLarge, cudaErrorInvalidClusterSize}) {
    const absl::Status status = CudaStatus(error, "launch");
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("launch")));
    EXPECT_THAT(status, ReasonIs("LAUNCH_SHAPE"));
  }
}

TEST(CudaStatus, OfALaunchIsThatOfAnythingElse) {
  for (int i = 0; i < 1000; ++i) {
    const auto error = static_cast<cudaError_t>(i);
    const absl::Status launched = LaunchStatus(error), other = CudaStatus(error, "copy in");
    EXPECT_EQ(launched.code(), other.code()) << i;
    EXPECT_EQ(DetailsOf(launched).reason, DetailsOf(other).reason) << i;
  }
  EXPECT_THAT(LaunchStatus(cudaErrorECCUncorrectable), ReasonIs("DEVICE_FAULT"));
  EXPECT_THAT(LaunchStatus(cudaErrorTensorMemoryLeak), ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(LaunchStatus(cudaErrorNoKernelImageForDevice),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("this build has no code for this GPU")));
  EXPECT_THAT(LaunchStatus(cudaErrorIllegalAddress).message(),
              Not(HasSubstr("this build has no code")));
}

TEST(CudaStatus, G10_G13_ADriverThatIsNotReadyMayBeLater) {
  for (const cudaError_t error : {cudaErrorMpsServerNotReady, cudaErrorSystemDriverMismatch,
                                  cudaErrorDevicesUnavailable, cudaErrorSystemNotReady}) {
    const absl::Status status = CudaStatus(error, "start");
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("start")));
    EXPECT_THAT(status, ReasonIs("DEVICE_UNAVAILABLE"));
    EXPECT_FALSE(IsSticky(error)) << error;
  }
  EXPECT_THAT(CudaStatus(cudaErrorMpsClientTerminated, "launch"), ReasonIs("DEVICE_FAULT"));
  EXPECT_TRUE(IsSticky(cudaErrorMpsClientTerminated));
}

TEST(CudaStatus, WhatAGraphCannotHoldIsNotCapturable) {
  for (const cudaError_t error :
       {cudaErrorStreamCaptureUnsupported, cudaErrorStreamCaptureInvalidated,
        cudaErrorStreamCaptureMerge, cudaErrorStreamCaptureUnjoined,
        cudaErrorStreamCaptureIsolation, cudaErrorStreamCaptureImplicit}) {
    EXPECT_TRUE(IsCaptureError(error)) << error;
    EXPECT_THAT(CudaStatus(error, "launch"), ReasonIs("NOT_CAPTURABLE"));
  }
  EXPECT_FALSE(IsCaptureError(cudaSuccess));
  EXPECT_FALSE(IsCaptureError(cudaErrorInvalidConfiguration));
}

TEST(WaitStatus, G9_EveryErrorIsAFaultOfKernelOrDevice) {
  EXPECT_THAT(WaitStatus(cudaSuccess, "wait"), IsOk());
  EXPECT_THAT(WaitStatus(cudaErrorIllegalAddress, "wait"), ReasonIs("KERNEL_FAULT"));
  EXPECT_THAT(WaitStatus(cudaErrorECCUncorrectable, "wait"), ReasonIs("DEVICE_FAULT"));
  for (const cudaError_t error :
       {cudaErrorInvalidValue, cudaErrorNotReady, cudaErrorMemoryAllocation,
        cudaErrorInvalidResourceHandle, cudaErrorSystemNotReady}) {
    const absl::Status status = WaitStatus(error, "wait");
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("wait: cudaError")));
    EXPECT_THAT(status, ReasonIs("DEVICE_FAULT"));
  }
}

TEST(WaitStatus, ButNotThatAStreamIsBeingCaptured) {
  EXPECT_THAT(WaitStatus(cudaErrorStreamCaptureUnsupported, "wait"), ReasonIs("NOT_CAPTURABLE"));
}

}  // namespace
}  // namespace gridclock
