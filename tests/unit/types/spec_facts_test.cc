#include "proto/types/spec_facts.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Told(const KernelSpec& spec) {
  std::vector<std::string> told;
  for (const SpecFact& fact : FactsOf(spec)) {
    told.push_back(absl::StrCat(fact.label, fact.is_prose ? " - " : ": ", fact.text));
  }
  return told;
}

TEST(SpecFacts, TellEveryPartOfTheWords) {
  ASSERT_OK_AND_ASSIGN(
      KernelSpec spec,
      ParseKernelSpec("norm x: T[*, N], w: T[N] -> y: T[*, N] over x; eps: f64 = 1e-6 in (0, 1], "
                      "axis: i64 = -1 where T in {f64, f32}, N >= 1 flops 2*numel(x) bytes 8*N"));
  spec.formula = "y = x w";
  spec.notes = "One rounding.";
  EXPECT_THAT(Told(spec),
              ElementsAre("formula: y = x w", "takes: x: T[*, N], w: T[N]",
                          "gives: y: T[*, N] over x", "attribute: eps: f64 = 1e-06 in (0, 1]",
                          "attribute: axis: i64 = -1", "where: T in {f64, f32}, N >= 1",
                          "flops: 2*numel(x)", "bytes: 8*N", "notes - One rounding."));
}

TEST(SpecFacts, SayWhatAKernelCostsWhoseWordsDoNot) {
  ASSERT_OK_AND_ASSIGN(const KernelSpec spec, ParseKernelSpec("spin; ns: i64"));
  EXPECT_THAT(Told(spec), ElementsAre("attribute: ns: i64", "flops - none are counted",
                                      "bytes - each input once, each output once"));
}

TEST(SpecFacts, OfAVariantWhatItTakesAndNeeds) {
  VariantSpec variant;
  EXPECT_EQ(TakesText(variant), "all");
  EXPECT_EQ(ScratchText(variant), "");
  ASSERT_OK_AND_ASSIGN(variant.clauses,
                       ParseClauses("when N % 4 == 0 scratch a: u8[N] scratch b: f32[2*N]"));
  EXPECT_EQ(TakesText(variant), "N % 4 == 0");
  EXPECT_EQ(ScratchText(variant), "a: u8[N], b: f32[2*N]");
}

}  // namespace
}  // namespace gridclock
