#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/api/registry.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::Status Nothing(const Call&) {
  return absl::OkStatus();
}

KernelDef Square(std::string words, std::string clauses = "") {
  return {.words = std::move(words),
          .summary = "Squares",
          .formula = "y = x^2",
          .cpu = {{"naive", "A loop", Nothing}, {"simd", "Vectors", Nothing, std::move(clauses)}}};
}

TEST(Registry, ParsesWordsAndListsVariantsPlainestFirst) {
  ASSERT_OK_AND_ASSIGN(
      const Registry registry,
      Registry::Create({{"square", Square("x: T[N] -> y: T[N]", "when N % 4 == 0")}}));
  const RegisteredKernel* square = registry.Find("square");
  ASSERT_NE(square, nullptr);
  EXPECT_EQ(square->spec.name, "square");
  EXPECT_EQ(square->spec.summary, "Squares");
  EXPECT_EQ(square->spec.formula, "y = x^2");
  ASSERT_EQ(square->spec.variants.size(), 2U);
  EXPECT_EQ(square->spec.variants[0].name, "naive");
  EXPECT_EQ(square->spec.variants[1].name, "simd");
  EXPECT_EQ(square->spec.variants[1].device_kind, "cpu");
  EXPECT_TRUE(square->spec.variants[1].clauses.when.has_value());
}

TEST(Registry, FindsVariantsByDevice) {
  ASSERT_OK_AND_ASSIGN(const Registry registry,
                       Registry::Create({{"square", Square("x: T[N] -> y: T[N]")}}));
  const RegisteredKernel& square = *registry.Find("square");
  EXPECT_EQ(Registry::FindVariant(square, "cpu", "simd"), &square.def.cpu[1]);
  EXPECT_EQ(Registry::FindVariant(square, "cpu", "tiled"), nullptr);
  EXPECT_EQ(Registry::FindVariant(square, "cuda", "simd"), nullptr);
  EXPECT_EQ(registry.Find("cube"), nullptr);
}

TEST(Registry, NamesTheKernelWhoseWordsDoNotParse) {
  EXPECT_THAT(Registry::Create({{"square", Square("x: T[N")}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("kernel 'square'")));
  EXPECT_THAT(Registry::Create({{"square", Square("x: T[N] -> y: T[N]", "when when")}}),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("kernel 'square'"), HasSubstr("variant simd"))));
}

TEST(Registry, RefusesTwoKernelsOfOneName) {
  EXPECT_THAT(Registry::Create({{"square", Square("x: T[N] -> y: T[N]")},
                                {"square", Square("x: T[N] -> y: T[N]")}}),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("defined twice")));
}

}  // namespace
}  // namespace gridclock
