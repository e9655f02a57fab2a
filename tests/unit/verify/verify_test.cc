#include "kernels/verify/verify.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"
#include "tests/unit/verify/doubling.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class VerifyTest : public DoublingTest {
 protected:
  explicit VerifyTest(std::int64_t n = 1000) : DoublingTest(n) {
    in_ = {{&binding_.inputs[0], {x_.data()}}};
    out_ = {{&binding_.outputs[0], {y_.data()}}};
  }

  absl::StatusOr<Verification> Verify(const KernelDef& def, const VerifyOptions& options = {}) {
    std::vector<std::byte> memory(VerifyBytes(def, binding_, threads_.count()));
    return gridclock::Verify(def, binding_, in_, out_, threads_, memory, options);
  }

  std::vector<OperandView> in_, out_;
};

TEST_F(VerifyTest, RightResultsPass) {
  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));

  EXPECT_EQ(v.checked, 1000);
  EXPECT_EQ(v.total, 1000);
  EXPECT_EQ(v.mismatches, 0);
  EXPECT_EQ(v.max_error, 0);
  EXPECT_EQ(v.first_mismatch, "");
}

TEST(CheckRowBytesTest, TheRowsOfAReferenceAreBoundedByTheArena) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  EXPECT_THAT(CheckRowBytes(kGiB, 0), IsOk());
  EXPECT_THAT(CheckRowBytes(kGiB + 1, 0), ReasonIs("TOO_LARGE"));
  EXPECT_THAT(CheckRowBytes(4 * kGiB, 16 * kGiB), IsOk());
  EXPECT_THAT(CheckRowBytes(4 * kGiB + 1, 16 * kGiB), ReasonIs("TOO_LARGE"));
}

TEST_F(VerifyTest, NamesTheFirstMismatch) {
  y_[700] = 1;
  y_[503] = 0.5;

  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));

  EXPECT_EQ(v.mismatches, 2);
  EXPECT_GT(v.max_error, 1000);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[503]: want 6, got 0.5, tolerance"));
}

TEST_F(VerifyTest, NamesTheLowestFiveMismatchesInOrder) {
  for (const int element : {900, 42, 700, 41, 650, 999, 43}) y_[element] = 0.5;

  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));

  EXPECT_EQ(v.mismatches, 7);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[41]: want -918, got 0.5"));
  EXPECT_THAT(v.more_mismatches, ElementsAre(HasSubstr("y[42]: "), HasSubstr("y[43]: "),
                                             HasSubstr("y[650]: "), HasSubstr("y[700]: ")));
}

TEST_F(VerifyTest, OneMismatchIsTheFirstAndHasNoneBehindIt) {
  y_[41] = 0.5;
  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[41]: "));
  EXPECT_THAT(v.more_mismatches, IsEmpty());
}

// The last part first: those of threads end in any order.
class BackwardThreads final : public Threads {
 public:
  int count() const override { return 8; }
  void ParallelFor(std::int64_t n, std::int64_t grain,
                   absl::FunctionRef<void(std::int64_t, std::int64_t)> body) override {
    for (std::int64_t begin = (n - 1) / grain * grain; begin >= 0; begin -= grain) {
      body(begin, std::min(n, begin + grain));
    }
  }
};

TEST_F(VerifyTest, ThePartsOfThreadsAreOneOrder) {
  BackwardThreads threads;
  KernelDef def = Doubling();
  // So much work that each thread has a part.
  def.reference.unit_terms = [](const Binding&) { return std::int64_t{1} << 13; };
  std::vector<std::byte> memory(VerifyBytes(def, binding_, threads.count()));
  for (const int element : {10, 130, 260, 390, 520, 650, 780, 910}) y_[element] = 0.5;

  ASSERT_OK_AND_ASSIGN(const Verification v,
                       gridclock::Verify(def, binding_, in_, out_, threads, memory));

  EXPECT_EQ(v.mismatches, 8);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[10]: "));
  EXPECT_THAT(v.more_mismatches, ElementsAre(HasSubstr("y[130]: "), HasSubstr("y[260]: "),
                                             HasSubstr("y[390]: "), HasSubstr("y[520]: ")));
}

TEST_F(VerifyTest, MismatchesOfAnEarlierOutputComeFirst) {
  std::vector<float> want = y_;
  const std::vector<OperandView> got = {out_[0], out_[0]};
  const std::vector<OperandView> expected = {{&binding_.outputs[0], {want.data()}},
                                             {&binding_.outputs[0], {x_.data()}}};
  const std::vector<std::string> names = {"y", "z"};
  want[17] += 1;
  want[900] += 1;
  ASSERT_OK_AND_ASSIGN(const Verification v,
                       VerifyExpected({.got = got, .want = expected, .names = names, .terms = 1},
                                      [] { return absl::OkStatus(); }));
  EXPECT_EQ(v.mismatches, 2 + 999);
  EXPECT_EQ(v.total, 2000);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[17]: "));
  EXPECT_THAT(v.more_mismatches, ElementsAre(HasSubstr("y[900]: "), HasSubstr("z[0]: "),
                                             HasSubstr("z[1]: "), HasSubstr("z[2]: ")));
}

TEST_F(VerifyTest, TellsHowFarResultsAre) {
  y_[503] = y_[503] * (1 + 0x1p-20F);  // 6: its unit in the last place is 2^-21.
  y_[504] = std::numeric_limits<float>::quiet_NaN();

  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));

  EXPECT_DOUBLE_EQ(v.max_abs, 6 * 0x1p-20);
  EXPECT_DOUBLE_EQ(v.max_rel, 0x1p-20);
  EXPECT_DOUBLE_EQ(v.max_ulp, 12);
  EXPECT_EQ(v.nan_mismatches, 1);
}

TEST(UlpsBetween, CountsStepsOfTheDType) {
  EXPECT_EQ(UlpsBetween(1 + 0x1p-23, 1, DType::kF32), 1);
  EXPECT_EQ(UlpsBetween(1 + 0x1p-7, 1, DType::kBF16), 1);
  EXPECT_EQ(UlpsBetween(1 + 0x1p-10, 1, DType::kF16), 1);
  EXPECT_EQ(UlpsBetween(1 + 0x1p-52, 1, DType::kF64), 1);
  EXPECT_EQ(UlpsBetween(4 + 0x1p-20, 4, DType::kF32), 2);
  EXPECT_EQ(UlpsBetween(3 * 0x1p-149, 0, DType::kF32), 3);
  EXPECT_EQ(UlpsBetween(7, 5, DType::kI32), 0);
}

TEST_F(VerifyTest, ExpectedValuesAreComparedElementByElement) {
  std::vector<float> want = y_;
  const std::vector<OperandView> expected = {{&binding_.outputs[0], {want.data()}}};
  const std::vector<std::string> names = {"y"};
  const auto compare = [&] {
    return VerifyExpected({.got = out_, .want = expected, .names = names, .terms = 1},
                          [] { return absl::OkStatus(); });
  };
  ASSERT_OK_AND_ASSIGN(const Verification same, compare());
  EXPECT_EQ(same.checked, 1000);
  EXPECT_EQ(same.total, 1000);
  EXPECT_EQ(same.mismatches, 0);
  want[17] += 1;
  ASSERT_OK_AND_ASSIGN(const Verification other, compare());
  EXPECT_EQ(other.mismatches, 1);
  EXPECT_THAT(other.first_mismatch, HasSubstr("y[17]: want "));
}

TEST_F(VerifyTest, ChecksARandomSubsetAboveTheBudget) {
  const VerifyOptions options{.most_terms = 100, .seed = 1};

  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling(), options));

  EXPECT_EQ(v.checked, 100);
  EXPECT_EQ(v.total, 1000);
}

TEST_F(VerifyTest, TheSubsetDependsOnTheSeedAndReachesEveryElement) {
  y_[777] = 1;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Verification v,
                         Verify(Doubling(), {.most_terms = 100, .seed = seed}));
    found += v.mismatches == 1 ? 1 : 0;
  }
  EXPECT_GT(found, 2);
  EXPECT_LT(found, 30);
}

TEST_F(VerifyTest, KernelsWithoutAReferenceCannotBeVerified) {
  EXPECT_FALSE(CanVerify(KernelDef{}));
  EXPECT_THAT(gridclock::Verify(KernelDef{}, binding_, in_, out_, threads_, {}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'double' has no reference")));
}

TEST_F(VerifyTest, ListsAreOneRunOfElements) {
  const OperandValue list{.is_list = true,
                          .tensors = {{.dtype = DType::kF32, .shape = {3}},
                                      {.dtype = DType::kF32, .shape = {0}},
                                      {.dtype = DType::kF32, .shape = {2}}}};
  binding_.inputs = {list};
  binding_.outputs = {list};
  in_ = {{&binding_.inputs[0], {&x_[0], nullptr, &x_[10]}}};
  out_ = {{&binding_.outputs[0], {&y_[0], nullptr, &y_[10]}}};
  y_[11] = 7;
  KernelDef def = Doubling();
  def.reference.units = [](const Binding&) -> std::int64_t { return 5; };

  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(def));

  EXPECT_EQ(v.checked, 5);
  EXPECT_EQ(v.mismatches, 1);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[4]: want -978, got 7"));
}

// Rows of 100: each element is the sum of its row, at the cost of one pass over the row.
KernelDef RowSums() {
  KernelDef def;
  def.reference.units = [](const Binding&) -> std::int64_t { return 10; };
  def.reference.unit_elements = [](const Binding&) -> std::int64_t { return 100; };
  def.reference.accumulation = [](const Binding&) -> std::int64_t { return 100; };
  def.reference.compute = [](const Binding&,
                             absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                             std::int64_t unit, std::size_t, std::span<double> result) {
    double sum = 0;
    for (std::int64_t i = 0; i < 100; ++i) sum += in(0, 100 * unit + i);
    std::fill(result.begin(), result.end(), sum);
  };
  return def;
}

TEST_F(VerifyTest, ARowThatSharesItsWorkCostsWhatItSays) {
  KernelDef def = RowSums();
  ASSERT_OK_AND_ASSIGN(const Verification by_element, Verify(def, {.most_terms = 1000}));
  EXPECT_EQ(by_element.checked, 100);

  def.reference.unit_terms = [](const Binding&) -> std::int64_t { return 100; };
  ASSERT_OK_AND_ASSIGN(const Verification by_row, Verify(def, {.most_terms = 1000}));
  EXPECT_EQ(by_row.checked, 1000);
}

TEST_F(VerifyTest, ToldToStopItStopsWithThatError) {
  int asked = 0;
  const auto poll = [&asked] {
    return ++asked > 1 ? absl::CancelledError("enough") : absl::OkStatus();
  };
  KernelDef def = Doubling();
  // So much work that each unit is a part of its own.
  def.reference.unit_terms = [](const Binding&) { return std::int64_t{1} << 22; };

  EXPECT_THAT(Verify(def, {.most_terms = std::int64_t{1} << 40, .poll = poll}),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(asked, 2);
}

TEST_F(VerifyTest, LongRowsAreMadeByFewerThreads) {
  KernelDef def = Doubling();
  EXPECT_EQ(VerifyBytes(def, binding_, 8), 8 * 128);
  def.reference.unit_elements = [](const Binding&) { return std::int64_t{1} << 23; };
  EXPECT_EQ(VerifyBytes(def, binding_, 8), std::int64_t{2} << 27);
  def.reference.unit_elements = [](const Binding&) { return std::int64_t{1} << 30; };
  EXPECT_EQ(VerifyBytes(def, binding_, 8), std::int64_t{16} << 30);
}

// A tensor of 0 rows may have rows of any length.
TEST_F(VerifyTest, OfNoRowsNothingIsChecked) {
  KernelDef def = Doubling();
  def.reference.units = [](const Binding&) { return std::int64_t{0}; };
  def.reference.unit_elements = [](const Binding&) { return std::int64_t{1} << 60; };
  EXPECT_EQ(VerifyBytes(def, binding_, 8), 0);
  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(def));
  EXPECT_EQ(v.checked, 0);
  EXPECT_EQ(v.mismatches, 0);
}

TEST_F(VerifyTest, TooLittleMemoryIsAnError) {
  std::vector<std::byte> memory(8);
  EXPECT_THAT(gridclock::Verify(Doubling(), binding_, in_, out_, threads_, memory),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 128 bytes")));
}

// A variant by another formula has the error of that formula.
TEST_F(VerifyTest, TheScaleOfAVariantTakesThePlaceOfTheReferences) {
  for (float& y : y_) y *= 1.001F;
  ASSERT_OK_AND_ASSIGN(const Verification strict, Verify(Doubling()));
  EXPECT_EQ(strict.mismatches, 999);
  const auto wide = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                       std::int64_t unit, std::size_t,
                       std::span<double> result) { result[0] = 1e4 * in(0, unit); };
  ASSERT_OK_AND_ASSIGN(const Verification own, Verify(Doubling(), {.magnitude = wide}));
  EXPECT_EQ(own.mismatches, 0) << own.first_mismatch;
}

TEST_F(VerifyTest, ANaNIsLeftOpenWhereTheVariantsOwnScaleIsNaNAndNothingElseIs) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto nan = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in,
                      std::int64_t unit, std::size_t, std::span<double> result) {
    result[0] = unit == 3 ? std::nan("") : std::abs(2 * in(0, unit));
  };
  y_[3] = kNaN;
  ASSERT_OK_AND_ASSIGN(const Verification own, Verify(Doubling(), {.magnitude = nan}));
  EXPECT_EQ(own.mismatches, 0) << own.first_mismatch;
  EXPECT_EQ(own.undecided, 1);
  EXPECT_TRUE(IsUndecided(own));
  KernelDef def = Doubling();
  def.reference.magnitude = nan;
  ASSERT_OK_AND_ASSIGN(const Verification of_reference, Verify(def));
  EXPECT_EQ(of_reference.mismatches, 1);
  y_[5] = kNaN;
  ASSERT_OK_AND_ASSIGN(const Verification another, Verify(Doubling(), {.magnitude = nan}));
  EXPECT_EQ(another.mismatches, 1);
}

TEST_F(VerifyTest, WhatRoundingsDecideMayBeAnotherInfinityOrNaNAndNothingElse) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  KernelDef def = Doubling();
  def.reference.unsettled =
      [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)> in, std::int64_t unit,
         std::size_t, std::vector<bool>& which) { which[0] = in(0, unit) > 400; };
  for (const std::size_t at : {2, 950}) x_[at] = kInfinity;
  for (const float got : {-kInfinity, std::numeric_limits<float>::quiet_NaN(), 7.0F}) {
    y_[2] = kInfinity;
    y_[950] = got;
    ASSERT_OK_AND_ASSIGN(const Verification v, Verify(def));
    EXPECT_EQ(v.mismatches, got == 7 ? 1 : 0) << got;
    EXPECT_EQ(v.undecided, got == 7 ? 0 : 1) << got;
  }
  def.reference.unsettled = nullptr;
  y_[950] = -kInfinity;
  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(def));
  EXPECT_EQ(v.mismatches, 1);
}

TEST_F(VerifyTest, AToleranceWiderThanTheValuesVerifiesNothing) {
  KernelDef def = Doubling();
  def.reference.accumulation = [](const Binding&) -> std::int64_t { return 1 << 20; };
  // Terms that cancel to a billionth.
  def.reference.magnitude = [](const Binding&, absl::FunctionRef<double(std::size_t, std::int64_t)>,
                               std::int64_t, std::size_t,
                               std::span<double> result) { result[0] = 1e9; };
  for (float& y : y_) y *= 1.0001F;

  ASSERT_OK_AND_ASSIGN(const Verification wide, Verify(def, {.most_terms = std::int64_t{1} << 40}));
  EXPECT_EQ(wide.mismatches, 0);
  EXPECT_EQ(wide.undecided, 999);  // The one that is equal needs no tolerance.
  EXPECT_TRUE(IsUndecided(wide));

  ASSERT_OK_AND_ASSIGN(const Verification narrow, Verify(Doubling()));
  EXPECT_EQ(narrow.mismatches, 999);
  EXPECT_FALSE(IsUndecided(narrow));
}

TEST_F(VerifyTest, OneUndecidedOutputIsNotHiddenByAnotherThatIsDecided) {
  std::vector<float> small(10, 1e-42F);
  const OperandValue ten{.is_list = false, .tensors = {{.dtype = DType::kF32, .shape = {10}}}};
  const std::vector<OperandView> got = {out_[0], {&ten, {small.data()}}};
  std::vector<float> other(10, 1.0e-42F * 1.01F);
  const std::vector<OperandView> want = {out_[0], {&ten, {other.data()}}};
  const std::vector<std::string> names = {"y", "z"};
  ASSERT_OK_AND_ASSIGN(const Verification v,
                       VerifyExpected({.got = got, .want = want, .names = names, .terms = 1},
                                      [] { return absl::OkStatus(); }));
  EXPECT_EQ(v.mismatches, 0);
  EXPECT_LE(v.undecided, 10);
  EXPECT_TRUE(IsUndecided(v));
}

// What was never written must not pass for true.
TEST_F(VerifyTest, ABoolIsZeroOrOne) {
  std::vector<std::uint8_t> got = {0, 1, 0x7B, 2};
  std::vector<std::uint8_t> want = {0, 1, 1, 1};
  const OperandValue bools{.is_list = false, .tensors = {{.dtype = DType::kBool, .shape = {4}}}};
  const std::vector<OperandView> there = {{&bools, {got.data()}}},
                                 right = {{&bools, {want.data()}}};
  const std::vector<std::string> names = {"y"};
  ASSERT_OK_AND_ASSIGN(const Verification v,
                       VerifyExpected({.got = there, .want = right, .names = names, .terms = 1},
                                      [] { return absl::OkStatus(); }));
  EXPECT_EQ(v.mismatches, 2);
}

// As doubles the first two are the same.
TEST_F(VerifyTest, ExpectedIntegersAreComparedToTheLastBit) {
  const std::vector<std::string> names = {"y"};
  const auto compare = [&](DType dtype, const void* got, const void* want) {
    const OperandValue two{.is_list = false, .tensors = {{.dtype = dtype, .shape = {2}}}};
    const std::vector<OperandView> there = {{&two, {const_cast<void*>(got)}}},
                                   right = {{&two, {const_cast<void*>(want)}}};
    return VerifyExpected({.got = there, .want = right, .names = names, .terms = 1},
                          [] { return absl::OkStatus(); });
  };
  const std::int64_t got[] = {5651572403255274280, -1}, want[] = {5651572403255274535, -1};
  ASSERT_OK_AND_ASSIGN(const Verification v, compare(DType::kI64, got, want));
  EXPECT_EQ(v.mismatches, 1);
  EXPECT_EQ(v.max_abs, 255);
  EXPECT_EQ(v.first_mismatch,
            "y[0]: want 5651572403255274535, got 5651572403255274280, tolerance 0");
  const std::uint64_t most[] = {~std::uint64_t{0}, 0}, less[] = {~std::uint64_t{0} - 1, 0};
  ASSERT_OK_AND_ASSIGN(const Verification far, compare(DType::kU64, most, less));
  EXPECT_EQ(far.mismatches, 1);
  EXPECT_EQ(far.max_abs, 1);
  ASSERT_OK_AND_ASSIGN(const Verification same, compare(DType::kU64, most, most));
  EXPECT_EQ(same.mismatches, 0);
  EXPECT_EQ(same.undecided, 0);
  EXPECT_FALSE(IsUndecided(same));
}

TEST_F(VerifyTest, ExactZerosNeedNoTolerance) {
  std::fill(x_.begin(), x_.end(), 0.0F);
  std::fill(y_.begin(), y_.end(), 0.0F);
  ASSERT_OK_AND_ASSIGN(const Verification v, Verify(Doubling()));
  EXPECT_EQ(v.undecided, 0);
  EXPECT_FALSE(IsUndecided(v));
}

}  // namespace
}  // namespace gridclock
