// Of one row of very many elements the suite must catch a kernel that stops before its last one.
// Here the row is as long as a machine without a GPU holds, on the GPU it is longer than 2^31.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/huge.h"
#include "tests/conformance/wrong.h"

namespace gridclock {
namespace {

using testing::Gt;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::array kReducing = {"sum",     "mean",        "max",       "argmax",
                                  "softmax", "log_softmax", "layernorm", "rmsnorm"};
constexpr std::int64_t kRow = 17 * kHugePattern;

const WrongWorld& TheWorld() {
  static const WrongWorld world;
  return world;
}

const Variant& RightOne(const char* name) {
  return TheWorld().registry->Find(name)->def.cpu.back();
}

// Right of all elements but the last.
template <std::size_t kKernel>
absl::Status StopShort(const Call& call) {
  auto* const x = const_cast<float*>(call.In<float>(0));
  const float last = std::exchange(x[kRow - 1], 0.0F);
  const absl::Status status = RightOne(kReducing[kKernel]).launch(call);
  x[kRow - 1] = last;
  return status;
}

std::vector<std::string> ProblemsOfLongRow(const char* name, const Variant& variant) {
  const RegisteredKernel& kernel = *TheWorld().registry->Find(name);
  std::vector<Instance> rows = InstancesOf(kernel.spec, DType::kF32, Size::kHuge);
  Instance& row = rows.front();
  for (NamedOperand& input : row.inputs) input.value.tensors[0].shape = {kRow};
  return CheckHugeCall(**TheWorld().device, kernel, variant, row, 7).problems;
}

template <std::size_t... kKernels>
constexpr std::array<LaunchFn, sizeof...(kKernels)> AllShort(std::index_sequence<kKernels...>) {
  return {StopShort<kKernels>...};
}

class LongRow : public testing::TestWithParam<std::size_t> {};

TEST_P(LongRow, IsWrongWhereTheLastElementIsLeftOut) {
  ASSERT_EQ(TheWorld().Error(), "");
  const char* const name = kReducing[GetParam()];
  EXPECT_THAT(ProblemsOfLongRow(name, RightOne(name)), IsEmpty());
  constexpr auto kShort = AllShort(std::make_index_sequence<kReducing.size()>());
  const auto problems =
      ProblemsOfLongRow(name, {.name = "short", .summary = "", .launch = kShort[GetParam()]});
  // Not in the last place alone, where that place has a result of its own.
  EXPECT_THAT(problems, SizeIs(Gt(GetParam() < 4 ? 0 : 100)));
}

INSTANTIATE_TEST_SUITE_P(Of, LongRow, testing::Range<std::size_t>(0, kReducing.size()),
                         [](const auto& one) { return std::string(kReducing[one.param]); });

}  // namespace
}  // namespace gridclock
