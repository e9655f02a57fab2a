// Whether right launches tell that each was computed.
#include "kernels/worker/compare_launches.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/verify/doubling.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr std::size_t kElements = 64;

using Values = std::vector<float>;

// Outputs of so many launches, held against references of their own, which each launch's are
// `off` tolerances away from.
class CompareLaunchesTest : public testing::Test {
 protected:
  // `wrong`: so many elements of each launch's output are.
  Verification Compare(const std::vector<Values>& references, double off = 0,
                       std::size_t wrong = 0) {
    constexpr std::size_t kBytes = kElements * sizeof(float);
    std::vector<std::byte> arena(2 * references.size() * kBytes);
    WorkerComparison comparison;
    WorkerOperand& output = comparison.outputs.emplace_back();
    output.value.tensors.push_back({.dtype = DType::kF32, .shape = {kElements}});
    comparison.output_names = {"y"};
    comparison.launch_bytes = kBytes;
    comparison.launches = {.offset = 0, .size = references.size() * kBytes};
    comparison.references = {.offset = references.size() * kBytes,
                             .size = references.size() * kBytes};
    comparison.seed_changes.resize(references.size());
    std::iota(comparison.seed_changes.begin(), comparison.seed_changes.end(), 1);
    const Tolerance tolerance = ToleranceFor(DType::kF32, 1);
    for (std::size_t i = 0; i < references.size(); ++i) {
      Values got = references[i];
      for (float& value : got) value *= static_cast<float>(1 + off * tolerance.relative);
      std::fill_n(got.begin(), wrong, 0.0F);
      std::memcpy(arena.data() + i * kBytes, got.data(), kBytes);
      std::memcpy(arena.data() + (references.size() + i) * kBytes, references[i].data(), kBytes);
    }
    auto found = CompareLaunches(comparison, {.registry = registry_,
                                              .threads = threads_,
                                              .arena = arena,
                                              .clock = clock_,
                                              .cancelled = never_});
    EXPECT_THAT(found, IsOk());
    EXPECT_EQ(found->mismatches, wrong * references.size()) << found->first_mismatch;
    return *found;
  }

  // `apart` elements have a value of this launch alone.
  static Values Launch(int launch, std::size_t apart) {
    Values values(kElements, 1);
    std::fill_n(values.begin(), apart, static_cast<float>(launch));
    return values;
  }

  const Registry registry_ = *Registry::Create({});
  OneThread threads_;
  FakeClock clock_;
  const std::function<bool()> never_ = [] { return false; };
};

TEST_F(CompareLaunchesTest, AFewValuesDoNotVouchForTheOthers) {
  EXPECT_TRUE(Compare({Launch(2, 0), Launch(3, 0), Launch(4, 0)}).undecided_output);
  EXPECT_TRUE(Compare({Launch(2, 31), Launch(3, 31), Launch(4, 31)}).undecided_output);
  EXPECT_FALSE(Compare({Launch(2, 32), Launch(3, 32), Launch(4, 32)}).undecided_output);
}

TEST_F(CompareLaunchesTest, NorDoAFewLaunches) {
  std::vector<Values> launches(7, Launch(2, kElements));
  EXPECT_TRUE(Compare(launches).undecided_output);
  for (int i = 0; i < 3; ++i) launches[i] = Launch(3 + i, kElements);
  EXPECT_TRUE(Compare(launches).undecided_output);
  launches[3] = Launch(9, kElements);
  EXPECT_FALSE(Compare(launches).undecided_output);
}

TEST_F(CompareLaunchesTest, MismatchesAreNamedWithTheirLaunchInOrder) {
  const Verification two = Compare({Launch(2, 0), Launch(3, 0), Launch(4, 0)}, 0, /*wrong=*/2);
  EXPECT_THAT(two.first_mismatch, StartsWith("launch 1 of 3: y[0]: want 1, got 0"));
  EXPECT_THAT(
      two.more_mismatches,
      ElementsAre(StartsWith("launch 1 of 3: y[1]: "), StartsWith("launch 2 of 3: y[0]: "),
                  StartsWith("launch 2 of 3: y[1]: "), StartsWith("launch 3 of 3: y[0]: ")));
  const Verification one = Compare({Launch(2, 0)}, 0, /*wrong=*/2);
  EXPECT_THAT(one.more_mismatches, ElementsAre(StartsWith("y[1]: ")));
}

// A right value may be chosen at the edge of what is right, where it fails as another launch's.
TEST_F(CompareLaunchesTest, WhatIsOffByDesignIsNoOtherValue) {
  EXPECT_TRUE(Compare({Launch(2, 0), Launch(3, 0)}, 0.9).undecided_output);
  const auto step = static_cast<float>(1 + 0.9 * ToleranceFor(DType::kF32, 1).relative);
  Values other(kElements, step);
  EXPECT_TRUE(Compare({other, Launch(3, 0)}, 0.9).undecided_output);
}

}  // namespace
}  // namespace gridclock
