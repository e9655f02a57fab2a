// Verification of operands that are not on the host: what is brought, and how much at a time.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/verify/verify.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/verify/doubling.h"

namespace gridclock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Addresses of "the device" are those of its memory plus this: the host cannot read there.
constexpr std::uintptr_t kShift = 0xDE00'0000'0000'0000U;

class Reader final : public OperandReader {
 public:
  absl::Status Read(const void* from, std::span<std::byte> to) override {
    waiting_.push_back(
        {reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(from) - kShift), to});
    bytes_ += to.size();
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    for (const auto& [from, to] : waiting_) std::memcpy(to.data(), from, to.size());
    waiting_.clear();
    return fails_after_ != 0 && bytes_ > fails_after_ ? absl::FailedPreconditionError("lost")
                                                      : absl::OkStatus();
  }
  std::uint64_t bytes() const { return bytes_; }
  void FailAfter(std::uint64_t bytes) { fails_after_ = bytes; }

 private:
  std::vector<std::pair<const std::byte*, std::span<std::byte>>> waiting_;
  std::uint64_t bytes_ = 0, fails_after_ = 0;
};

using In = absl::FunctionRef<double(std::size_t, std::int64_t)>;

// Reads all of x for its first element, and says 2 x all the same.
KernelDef ReadingAll() {
  KernelDef def = Doubling();
  def.reference.units = [](const Binding&) -> std::int64_t { return 1; };
  def.reference.compute = [](const Binding& binding, In in, std::int64_t unit, std::size_t,
                             std::span<double> result) {
    for (std::int64_t i = 0; i < Elements(binding.inputs[0].tensors[0].shape); ++i) in(0, i);
    result[0] = 2 * in(0, unit);
  };
  return def;
}

constexpr std::uint64_t kPage = OperandElements::kPageBytes;
// About eight pages of f32, the last of them not whole.
constexpr std::int64_t kN = 1'000'000;

class PagedTest : public DoublingTest {
 protected:
  explicit PagedTest(std::int64_t n = kN, int threads = 1) : DoublingTest(n, threads) {}

  absl::StatusOr<Verification> Check(const KernelDef& def, VerifyOptions options) {
    const auto far = [](std::vector<float>& values) {
      return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(values.data()) + kShift);
    };
    const std::vector<OperandView> in = {{&binding_.inputs[0], {far(x_)}}};
    const std::vector<OperandView> out = {{&binding_.outputs[0], {far(y_)}}};
    std::vector<std::byte> memory(VerifyBytes(def, binding_, threads_.count()));
    options.reader = &reader_;
    return Verify(def, binding_, in, out, threads_, memory, options);
  }

  Reader reader_;
};

TEST_F(PagedTest, AllIsBroughtOnceWhereThereIsRoom) {
  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {}));

  EXPECT_EQ(v.checked, kN);
  EXPECT_EQ(v.mismatches, 0);
  EXPECT_EQ(reader_.bytes(), 2 * 4 * kN);
}

TEST_F(PagedTest, TwoPagesOfRoomWillDo) {
  y_[777'777] = 0;

  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {.most_page_bytes = 2 * kPage}));

  EXPECT_EQ(v.checked, kN);
  EXPECT_EQ(v.mismatches, 1);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[777777]: want"));
}

// Units are checked as their pages come.
TEST_F(PagedTest, MismatchesAreNamedInTheirOrder) {
  for (const int element : {3, 999'999, 500'000, 777'777, 250'000, 4, 888'888}) y_[element] = 0.5;

  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {.most_page_bytes = 2 * kPage}));

  EXPECT_EQ(v.mismatches, 7);
  EXPECT_THAT(v.first_mismatch, HasSubstr("y[3]: want"));
  EXPECT_THAT(v.more_mismatches, ElementsAre(HasSubstr("y[4]: "), HasSubstr("y[250000]: "),
                                             HasSubstr("y[500000]: "), HasSubstr("y[777777]: ")));
}

TEST_F(PagedTest, ASubsetIsOfRunsFromAllOver) {
  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {.most_terms = 300'000, .seed = 5}));

  EXPECT_EQ(v.checked, 64 * (300'000 / 64));
  EXPECT_EQ(v.total, kN);
  EXPECT_EQ(v.mismatches, 0);
}

TEST_F(PagedTest, AWrongThirtySecondCannotLieBetweenTheRuns) {
  std::fill(y_.end() - kN / 32, y_.end(), 0);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ASSERT_OK_AND_ASSIGN(const Verification v,
                         Check(Doubling(), {.most_terms = 30'000, .seed = seed}));
    EXPECT_GT(v.mismatches, 0) << seed;
  }
}

TEST_F(PagedTest, ASubsetBringsNoMoreThanThePagesOfItsRuns) {
  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {.most_terms = 1, .seed = 5}));

  EXPECT_EQ(v.checked, 1);
  EXPECT_LE(reader_.bytes(), 2 * kPage);
}

TEST_F(PagedTest, AUnitThatReadsMoreThanThereIsRoomForIsAnError) {
  EXPECT_THAT(Check(ReadingAll(), {.most_page_bytes = 16 * kPage}), IsOk());
  const auto large = Check(ReadingAll(), {.most_page_bytes = 4 * kPage});
  EXPECT_THAT(large, StatusIs(absl::StatusCode::kResourceExhausted,
                              AllOf(HasSubstr("'y'"), HasSubstr(absl::StrCat(4 * kPage)))));
  EXPECT_THAT(large, ReasonIs("TOO_LARGE"));
}

constexpr std::int64_t kManyUnits = 5 << 20;

// With so many threads all units would be one round.
class ManyUnitsTest : public PagedTest {
 protected:
  ManyUnitsTest() : PagedTest(kManyUnits, 64) {}
};

// Asked before each pass over a round: one that asks for pages, and one that has them.
TEST_F(ManyUnitsTest, AreNotListedAllAtOnce) {
  int passes = 0;
  ASSERT_OK_AND_ASSIGN(const Verification v, Check(Doubling(), {.poll = [&] {
                                                     ++passes;
                                                     return absl::OkStatus();
                                                   }}));
  EXPECT_EQ(v.checked, kManyUnits);
  EXPECT_EQ(v.mismatches, 0);
  EXPECT_EQ(passes, 2 * kManyUnits / (1 << 20));
}

TEST_F(PagedTest, AnErrorOfTheReaderEndsIt) {
  reader_.FailAfter(kPage);
  EXPECT_THAT(Check(Doubling(), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("lost")));
}

}  // namespace
}  // namespace gridclock
