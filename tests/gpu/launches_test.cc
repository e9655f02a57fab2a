// What answers say of the launches of a call, and of the memory that it took.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "kernels/catalog/list_sizes.h"
#include "proto/types/job.h"
#include "tests/gpu/server_gpu_fixture.h"

namespace gridclock {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Property;

class LaunchesTest : public OwnServerGpuTest {
 protected:
  void SetUp() override {
    Start("cuda:0");
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(Eventually(
        [&] {
          return Call("cuda:0", InlineRequest("square", {1, 2, 3})).ok();
        },
        absl::Seconds(60)));
  }

  static void Add(v1::RunRequest* request, const std::string& name,
                  const std::vector<std::int64_t>& dims) {
    v1::Input* input = request->add_inputs();
    input->set_name(name);
    input->mutable_spec()->set_dtype(v1::F32);
    for (const std::int64_t dim : dims) input->mutable_spec()->add_dims(dim);
    input->mutable_generate()->set_kind(v1::Generator::UNIFORM);
    input->mutable_generate()->set_a(0);
    input->mutable_generate()->set_b(1);
  }

  // A step over so many tensors.
  static v1::RunRequest AdamW(const std::string& variant, int tensors, std::int64_t arg_bytes,
                              std::int64_t elements = 7) {
    v1::RunRequest request;
    request.set_kernel("adamw");
    request.set_variant(variant);
    request.set_device("cuda:0");
    (*request.mutable_attributes())["arg_bytes"].set_i64(arg_bytes);
    for (const char* name : {"p", "g", "m", "v"}) {
      Add(&request, name, std::vector<std::int64_t>(static_cast<std::size_t>(tensors), elements));
      v1::TensorSpec* list = request.mutable_inputs()->rbegin()->mutable_spec();
      list->set_is_list(true);
      for (int i = 0; i < tensors; ++i) list->add_ranks(1);
    }
    return request;
  }

  v1::RunSummary Run(const v1::RunRequest& request) const {
    const RawResult result = RawCall(channel_, kRunMethod, {request.SerializeAsString()});
    EXPECT_THAT(result.status, IsOk());
    v1::RunResponse response;
    EXPECT_TRUE(!result.messages.empty() && response.ParseFromString(result.messages[0]));
    return response.summary();
  }

  static std::int64_t Launches(const v1::RunSummary& summary) {
    const auto& kernels = summary.device_kernels();
    return std::accumulate(kernels.begin(), kernels.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& one) { return sum + one.count(); });
  }
};

std::int64_t Aligned(std::int64_t bytes) {
  constexpr auto kTo = static_cast<std::int64_t>(kTensorAlignment);
  return (bytes + kTo - 1) / kTo * kTo;
}

// So many tensors of 7 floats, one behind the other.
std::int64_t Temporary(std::int64_t tensors) {
  return Aligned(tensors * 7 * 4);
}

// What a launch is told of so many tensors in so many columns.
std::int64_t TableBytes(std::int64_t tensors, std::int64_t columns) {
  return Aligned(tensors * list::EntryBytes(columns));
}

// 14 elementary operations; of adamw 90 tensors fit into 4,096 bytes of arguments, and 741 into
// 32,764. Operation by operation there is a temporary tensor beside the four lists.
TEST_F(LaunchesTest, EachRungOfALadderLaunchesAsOftenAsItSays) {
  struct Rung {
    const char* variant;
    int tensors;
    std::int64_t arg_bytes;
    std::int64_t launches;
    std::int64_t scratch;
  };
  for (const Rung& rung :
       {Rung{"naive", 5, 4096, 70, Temporary(5)},
        Rung{"foreach", 5, 4096, 14, TableBytes(5, 5) + Temporary(5)},
        Rung{"per_tensor", 5, 4096, 5, 0}, Rung{"param_struct", 5, 4096, 1, 0},
        Rung{"param_struct", 90, 4096, 1, 0}, Rung{"param_struct", 91, 4096, 2, 0},
        Rung{"param_struct", 741, 32764, 1, 0}, Rung{"param_struct", 742, 32764, 2, 0},
        Rung{"pointer_table", 5, 4096, 1, TableBytes(5, 4)},
        Rung{"pointer_table", 742, 4096, 1, TableBytes(742, 4)},
        Rung{"auto", 742, 32764, 1, TableBytes(742, 4)}}) {
    SCOPED_TRACE(absl::StrCat(rung.variant, " of ", rung.tensors));
    const v1::RunSummary summary = Run(AdamW(rung.variant, rung.tensors, rung.arg_bytes));
    EXPECT_EQ(Launches(summary), rung.launches);
    const std::int64_t lists = 4 * rung.tensors * Aligned(7 * 4);
    EXPECT_EQ(summary.peak_device_bytes(), static_cast<std::uint64_t>(lists + rung.scratch));
  }
}

TEST_F(LaunchesTest, OfEmptyTensorsThereAreNone) {
  for (const char* variant : {"naive", "foreach", "per_tensor", "param_struct", "auto"}) {
    EXPECT_EQ(Run(AdamW(variant, /*tensors=*/3, 4096, /*elements=*/0)).device_kernels_size(), 0)
        << variant;
  }
}

// To read its inputs would take time, and nobody reads them.
TEST_F(LaunchesTest, WhatMakesNothingIsMeasuredWithoutDoubt) {
  v1::RunRequest request;
  request.set_kernel("matmul");
  request.set_device("cuda:0");
  Add(&request, "a", {0, 4096});
  Add(&request, "b", {4096, 4096});
  request.mutable_measure()->set_method(v1::ISOLATED);
  request.mutable_measure()->set_max_samples(20);
  const v1::RunSummary summary = Run(request);
  EXPECT_EQ(summary.device_kernels_size(), 0);
  EXPECT_EQ(std::ranges::count(summary.flags(), v1::IMPOSSIBLE), 0) << summary.DebugString();
  EXPECT_EQ(std::ranges::count(summary.flags(), v1::SUSPECT), 0) << summary.DebugString();
}

TEST_F(LaunchesTest, AutoCopiesNoTableWhereTheArgumentsHaveRoom) {
  for (const int tensors : {90, 91, 741, 742}) {
    const bool fits = tensors <= list::TensorsOfALaunch(/*operands=*/4, list::kArgBytesOfAuto);
    v1::RunRequest request = AdamW("auto", tensors, 4096);
    request.mutable_measure()->set_method(v1::DEVICE_TIME);  // Whose records have names.
    request.mutable_measure()->set_max_samples(3);
    EXPECT_THAT(Run(request).device_kernels(),
                Contains(Property(&v1::DeviceKernel::name,
                                  HasSubstr(fits ? "ParamKernel" : "TableKernel"))))
        << tensors << " tensors";
  }
}

TEST_F(LaunchesTest, ALaunchOfSeveralKernelsListsThem) {
  v1::RunRequest request;
  request.set_kernel("cdist");
  request.set_variant("matmul");
  request.set_device("cuda:0");
  Add(&request, "a", {100, 20});
  Add(&request, "b", {100, 20});
  EXPECT_EQ(Launches(Run(request)), 3);
  request.mutable_measure()->set_method(v1::DEVICE_TIME);
  request.mutable_measure()->set_budget_seconds(0.05);
  const v1::RunSummary summary = Run(request);
  // The squares of both matrices are one kernel's, launched twice.
  ASSERT_EQ(summary.device_kernels_size(), 2);
  const auto& [first, second] = std::pair(summary.device_kernels(0), summary.device_kernels(1));
  EXPECT_NE(first.name(), second.name());
  EXPECT_EQ(std::max(first.count(), second.count()), 2 * std::min(first.count(), second.count()));
}

}  // namespace
}  // namespace gridclock
