// What the suite is made of, beside whole kernels: where operands lie, and which calls are made.
#include <algorithm>
#include <bit>
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
#include "tests/conformance/harness.h"
#include "tests/conformance/instances.h"
#include "tests/conformance/operand.h"
#include "tests/support/separate_device.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

OperandValue Floats(const std::vector<std::int64_t>& sizes) {
  OperandValue value{.is_list = sizes.size() != 1, .tensors = {}};
  for (const std::int64_t size : sizes) value.tensors.push_back({DType::kF32, {size}});
  return value;
}

// A library's workspace is 32 MiB, and is looked at after each launch.
TEST(Operand, OfALargeTensorTheGuardsAloneAreBrought) {
  SeparateDevice device(std::uint64_t{64} << 20);
  const OperandValue value = Floats({8 << 20});
  ASSERT_OK_AND_ASSIGN(Operand operand, Operand::Create(device, value, {}));
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
        ASSERT_OK_AND_ASSIGN(Operand operand, Operand::Create(device, value, {.misaligned = true}));
        EXPECT_TRUE(operand.GuardsHold());
        auto* const data = device.Reach<std::byte>(operand.view().data[i]);
        *(before ? data - 1 : data + operand.bytes(i)) = std::byte{0};
        EXPECT_FALSE(operand.GuardsHold()) << i << " of " << sizes.size() << ", " << before;
      }
    }
  }
}

// So that a tool knows where it ends, and what of it was never written.
TEST(Operand, ThatIsExactHasABufferForEachTensorThatEndsWithItAndHoldsNothing) {
  for (const bool misaligned : {false, true}) {
    SeparateDevice device(std::uint64_t{1} << 20);
    const OperandValue value = Floats({3, 0, 100'000});
    ASSERT_OK_AND_ASSIGN(const Operand operand,
                         Operand::Create(device, value, {.misaligned = misaligned, .exact = true}));
    const std::uint64_t shift = misaligned ? 4 : 0;
    EXPECT_THAT(device.asked(), ElementsAre(12 + shift, shift, 400'000 + shift));
    for (const void* data : operand.view().data) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, shift);
    }
    EXPECT_EQ(device.under_way(), 0U);
    EXPECT_TRUE(operand.GuardsHold());
    EXPECT_EQ(device.copied_out(), 0U);
  }
}

TEST(Operand, ThatIsExactGivesBackWhatItGot) {
  SeparateDevice device(std::uint64_t{1} << 20);
  const OperandValue value = Floats({3, 0, 1000});
  ASSERT_OK_AND_ASSIGN(Operand operand,
                       Operand::Create(device, value, {.misaligned = true, .exact = true}));
  const std::vector<std::vector<std::byte>> given{
      std::vector<std::byte>(12, std::byte{1}), {}, std::vector<std::byte>(4000, std::byte{2})};
  ASSERT_THAT(operand.Put(given), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto got, operand.Get());
  EXPECT_EQ(got, given);
  EXPECT_EQ(device.copied_out(), 4012U);
  ASSERT_THAT(operand.Fill(std::byte{3}), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto part, operand.GetPart(8, 4));
  EXPECT_EQ(part, std::vector<std::byte>(4, std::byte{3}));
}

// A square that notes what its output and its scratch held before, each time.
SeparateDevice* device_of_square = nullptr;
std::vector<std::vector<std::uint32_t>> held;
absl::Status NotingSquare(const Call& call) {
  const auto* x = device_of_square->Reach<float>(call.In<float>(0));
  auto* y = device_of_square->Reach<float>(call.Out<float>(0));
  held.push_back({std::bit_cast<std::uint32_t>(y[0]),
                  *device_of_square->Reach<std::uint32_t>(call.scratch[0].data[0])});
  for (std::int64_t i = 0; i < Elements(call.OutShape(0)); ++i) y[i] = x[i] * x[i];
  return absl::OkStatus();
}

TEST(CheckCall, WritesNothingToWhatAKernelMustNotReadBeforeItWritesItWhereAToolLooksForThat) {
  const auto registry = Registry::Create(BuiltInKernels());
  ASSERT_THAT(registry, IsOk());
  const Variant square{
      .name = "noting", .summary = "", .launch = NotingSquare, .clauses = "scratch word: u8[4]"};
  const Instance call{.inputs = {{"x", Floats({1000})}}, .attributes = {}};
  for (const Memory memory : {Memory::kGuarded, Memory::kExact, Memory::kUnwritten}) {
    SeparateDevice device(std::uint64_t{1} << 20);
    device_of_square = &device;
    held.clear();
    EXPECT_THAT(CheckCall(device, *registry->Find("square"), square, call, {.memory = memory}),
                IsEmpty());
    ASSERT_GE(held.size(), 2U);
    const bool written = memory != Memory::kUnwritten;
    EXPECT_THAT(held[0], Each(written ? 0xABABABAB : 0));
    EXPECT_EQ(held[1][1], written ? 0xFFFFFFFF : 0);
    EXPECT_EQ(held[1][0] == 0xFFFFFFFF, written);
    const std::uint64_t just = memory == Memory::kGuarded ? 0 : 3;  // x, y, and the scratch.
    EXPECT_EQ(std::count_if(device.asked().begin(), device.asked().end(),
                            [](std::uint64_t size) { return size == 4000 || size == 4; }),
              just);
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
