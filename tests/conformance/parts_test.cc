// What the suite is made of, beside whole kernels: where operands lie, and which calls are made.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/api/registry.h"
#include "kernels/catalog/catalog.h"
#include "kernels/catalog/list_sizes.h"
#include "tests/conformance/instances.h"
#include "tests/conformance/operand.h"
#include "tests/support/separate_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

OperandValue Floats(const std::vector<std::int64_t>& sizes) {
  OperandValue value{.is_list = sizes.size() != 1, .tensors = {}};
  for (const std::int64_t size : sizes) value.tensors.push_back({DType::kF32, {size}});
  return value;
}

// A library's workspace is 32 MiB, and is looked at after each launch.
TEST(Operand, OfALargeTensorTheGuardsAloneAreBrought) {
  SeparateDevice device(std::uint64_t{64} << 20);
  const OperandValue value = Floats({8 << 20});
  ASSERT_OK_AND_ASSIGN(Operand operand, Operand::Create(device, value, false));
  EXPECT_TRUE(operand.GuardsHold());
  EXPECT_LE(device.copied_out(), 4096U);
}

TEST(Operand, SeesAWriteRightBesideEachTensorHoweverLarge) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {3}, {100'000}, {8 << 20}, {5, 0, 7}, {1, 2'000'000, 3}}) {
    const OperandValue value = Floats(sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (const bool before : {false, true}) {
        SeparateDevice device(std::uint64_t{64} << 20);
        ASSERT_OK_AND_ASSIGN(Operand operand, Operand::Create(device, value, true));
        EXPECT_TRUE(operand.GuardsHold());
        auto* const data = device.Reach<std::byte>(operand.view().data[i]);
        *(before ? data - 1 : data + operand.bytes(i)) = std::byte{0};
        EXPECT_FALSE(operand.GuardsHold()) << i << " of " << sizes.size() << ", " << before;
      }
    }
  }
}

std::size_t LongestList(const std::vector<Instance>& calls) {
  std::size_t longest = 0;
  for (const Instance& call : calls) {
    for (const NamedOperand& input : call.inputs) {
      longest = std::max(longest, input.value.tensors.size());
    }
  }
  return longest;
}

TEST(OfShortLists, LeavesOutTheListsThatTakeALaunchForEachOfHundredsOfTensors) {
  const auto registry = Registry::Create(BuiltInKernels());
  ASSERT_THAT(registry, IsOk());
  const KernelSpec& spec = registry->Find("foreach_add")->spec;
  const auto all = InstancesOf(spec, DType::kF32);
  const auto some = OfShortLists(spec, all);
  const auto room = static_cast<std::size_t>(list::TensorsOfALaunch(3, 4096));
  EXPECT_GT(LongestList(all), 5 * room);
  EXPECT_EQ(LongestList(some), room);
  const auto is_long = [&](const Instance& call) { return LongestList({call}) > room; };
  EXPECT_EQ(some.size() + static_cast<std::size_t>(std::count_if(all.begin(), all.end(), is_long)),
            all.size());
}

// Of all kernels over lists, whatever else the call has.
TEST(InstancesOf, ListsAreAsLongAsArgumentsHaveRoomAndLonger) {
  const auto registry = Registry::Create(BuiltInKernels());
  ASSERT_THAT(registry, IsOk());
  int kernels = 0;
  for (const auto& [name, kernel] : registry->kernels()) {
    const auto& attributes = kernel.spec.attributes;
    if (attributes.empty() || attributes.back().name != "arg_bytes") continue;
    ++kernels;
    std::map<std::int64_t, std::set<std::int64_t>> lengths;  // By bytes.
    for (const Instance& call : InstancesOf(kernel.spec, DType::kF32)) {
      const auto bytes = std::get<std::int64_t>(call.attributes.back().value);
      lengths[bytes].insert(std::ssize(call.inputs[0].value.tensors));
    }
    const std::int64_t operands = std::ssize(kernel.spec.inputs) + std::ssize(kernel.spec.outputs);
    for (const std::int64_t bytes : {list::kFewArgBytes, list::kManyArgBytes}) {
      const std::int64_t room = list::TensorsOfALaunch(operands, bytes);
      EXPECT_THAT(lengths[bytes], testing::IsSupersetOf({std::int64_t{1}, room, room + 1}))
          << name << ", " << bytes << " bytes";
    }
  }
  EXPECT_EQ(kernels, 5);
}

TEST(InstancesOf, EverySizeOfAProductMeetsAllTranspositionsAndThoseBothFormsOfItsEnd) {
  const auto registry = Registry::Create(BuiltInKernels());
  ASSERT_THAT(registry, IsOk());
  const KernelSpec& spec = registry->Find("matmul_bias_gelu")->spec;
  std::map<Shape, std::set<std::pair<bool, bool>>> by_sizes;
  std::set<std::tuple<bool, bool, std::string>> all;
  for (const Instance& call : InstancesOf(spec, DType::kF32)) {
    ASSERT_OK_AND_ASSIGN(const Binding binding, Bind(spec, call.inputs, call.attributes));
    const bool ta = binding.Bool("ta"), tb = binding.Bool("tb");
    Shape sizes = binding.outputs[0].tensors[0].shape;
    sizes.push_back(binding.Dim("K"));
    by_sizes[sizes].insert({ta, tb});
    all.insert({ta, tb, binding.Word("approximate")});
  }
  EXPECT_GT(by_sizes.size(), 10U);
  for (const auto& [sizes, transpositions] : by_sizes) {
    EXPECT_EQ(transpositions.size(), 4U) << testing::PrintToString(sizes);
  }
  EXPECT_EQ(all.size(), 8U);
}

TEST(OfShortLists, LeavesOtherCallsAsTheyAre) {
  const auto registry = Registry::Create(BuiltInKernels());
  ASSERT_THAT(registry, IsOk());
  const KernelSpec& spec = registry->Find("square")->spec;
  const auto all = InstancesOf(spec, DType::kF32);
  EXPECT_EQ(OfShortLists(spec, all).size(), all.size());
}

}  // namespace
}  // namespace gridclock
