// Of long rows the suite must catch a kernel that stops before the last elements; of one row of
// very many before the last one. Here that row is as long as a machine without a GPU holds, on the
// GPU it is longer than 2^31.
#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/huge.h"
#include "tests/conformance/wrong.h"

namespace gridclock {
namespace {

using testing::Contains;
using testing::Gt;
using testing::HasSubstr;
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

// The last elements of each row.
template <typename Body>
void ForEachEnd(const Call& call, std::int64_t count, Body body) {
  const std::int64_t n = call.binding->Dim("N");
  for (std::int64_t end = n; end <= Elements(call.InShape(0)); end += n) body(end - count, end);
}

// Knows nothing of the last elements of a row, but what belongs in their places.
template <std::size_t kKernel, std::int64_t kLeftOut>
absl::Status StopShort(const Call& call) {
  const LaunchFn right = RightOne(kReducing[kKernel]).launch;
  GC_RETURN_IF_ERROR(right(call));
  auto* const x = const_cast<float*>(call.In<float>(0));
  auto* const y = call.Out<float>(0);
  const std::vector<float> given(x, x + Elements(call.InShape(0)));
  const bool has_places = call.OutShape(0) == call.InShape(0);
  const std::vector<float> wanted(y, has_places ? y + given.size() : y);
  ForEachEnd(call, kLeftOut, [&](auto begin, auto end) { std::fill(x + begin, x + end, 0.0F); });
  const absl::Status status = right(call);
  std::copy(given.begin(), given.end(), x);
  if (!has_places) return status;
  ForEachEnd(call, kLeftOut, [&](auto begin, auto end) {
    std::copy(wanted.begin() + begin, wanted.begin() + end, y + begin);
  });
  return status;
}

std::vector<std::string> ProblemsOfLongRow(const char* name, const Variant& variant) {
  const RegisteredKernel& kernel = *TheWorld().registry->Find(name);
  std::vector<Instance> rows = InstancesOf(kernel.spec, DType::kF32, Size::kHuge);
  Instance& row = rows.front();
  for (NamedOperand& input : row.inputs) input.value.tensors[0].shape = {kRow};
  return CheckHugeCall(**TheWorld().device, kernel, variant, row, 7).problems;
}

template <std::int64_t kLeftOut, std::size_t... kKernels>
constexpr std::array<LaunchFn, sizeof...(kKernels)> AllShort(std::index_sequence<kKernels...>) {
  return {StopShort<kKernels, kLeftOut>...};
}
template <std::int64_t kLeftOut>
LaunchFn Short(std::size_t kernel) {
  return AllShort<kLeftOut>(std::make_index_sequence<kReducing.size()>())[kernel];
}

class LongRow : public testing::TestWithParam<std::size_t> {};

TEST_P(LongRow, IsWrongWhereTheLastElementIsLeftOut) {
  ASSERT_EQ(TheWorld().Error(), "");
  const char* const name = kReducing[GetParam()];
  EXPECT_THAT(ProblemsOfLongRow(name, RightOne(name)), IsEmpty());
  const auto problems =
      ProblemsOfLongRow(name, {.name = "short", .summary = "", .launch = Short<1>(GetParam())});
  // Not in some places alone, where each has a result of its own.
  EXPECT_THAT(problems, SizeIs(Gt(GetParam() < 4 ? 0 : 100)));
}

std::string NameOf(const testing::TestParamInfo<std::size_t>& one) {
  return kReducing[one.param];
}
INSTANTIATE_TEST_SUITE_P(Of, LongRow, testing::Range<std::size_t>(0, kReducing.size()), NameOf);

// With it each of them would pass if no element decided.
constexpr std::uint64_t kSeed = 6;

// Of the large calls those of rows of so many elements.
std::vector<std::string> ProblemsOfLargeRows(const char* name, const Variant& variant,
                                             std::int64_t n) {
  const RegisteredKernel& kernel = *TheWorld().registry->Find(name);
  std::vector<std::string> problems;
  for (const Instance& call : InstancesOf(kernel.spec, DType::kF32, Size::kLarge)) {
    if (call.inputs[0].value.tensors[0].shape.back() != n) continue;
    for (auto& problem : CheckCall(**TheWorld().device, kernel, variant, call,
                                   {.seed = kSeed, .data = Data::kDecided})) {
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

class LargeRows : public testing::TestWithParam<std::size_t> {};

TEST_P(LargeRows, AreWrongWhereTheLastEightElementsAreLeftOut) {
  ASSERT_EQ(TheWorld().Error(), "");
  const char* const name = kReducing[GetParam()];
  EXPECT_THAT(ProblemsOfLargeRows(name, RightOne(name), 131072), IsEmpty());
  const Variant wrong{.name = "short", .summary = "", .launch = Short<8>(GetParam())};
  EXPECT_THAT(ProblemsOfLargeRows(name, wrong, 131072), Contains(HasSubstr("differ")));
}

INSTANTIATE_TEST_SUITE_P(Of, LargeRows, testing::Range<std::size_t>(0, kReducing.size()), NameOf);

}  // namespace
}  // namespace gridclock
