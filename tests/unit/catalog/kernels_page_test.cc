#include "kernels/api/kernels_page.h"

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/catalog/catalog.h"
#include "tests/support/status_matchers.h"

namespace gridclock {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Committed() {
  std::ifstream in(GRIDCLOCK_KERNELS_PAGE);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Up to the next kernel's; empty if the page has none.
absl::string_view SectionOf(absl::string_view page, absl::string_view kernel) {
  const auto begin = page.find(absl::StrCat("\n## ", kernel, "\n"));
  if (begin == absl::string_view::npos) return "";
  return page.substr(begin, page.find("\n## ", begin + 1) - begin);
}

// A new kernel is one new file: until gridclock-kernels-doc has run, the page lacks it, and says no
// wrong word. tools/check_kernels_page.py asks for it before the change is proposed. Where that was
// run without a CUDA compiler, its lines of GPUs come with the next build that has one.
std::vector<std::pair<std::string, KernelDef>> KernelsOfThePage(
    absl::string_view page, std::vector<std::pair<std::string, KernelDef>> kernels) {
  std::erase_if(kernels, [&](const auto& kernel) { return SectionOf(page, kernel.first).empty(); });
  for (auto& [name, def] : kernels) {
    if (!absl::StrContains(SectionOf(page, name), "` | cuda | ")) def.cuda.clear();
  }
  return kernels;
}

TEST(KernelsPageTest, TheCommittedPageIsTheWordsOfTheKernels) {
  const std::string page = Committed();
  ASSERT_OK_AND_ASSIGN(const Registry registry,
                       Registry::Create(KernelsOfThePage(page, BuiltInKernels())));
  EXPECT_EQ(page, KernelsPage(registry, page))
      << "run build/dev/bin/gridclock-kernels-doc docs/kernels.md";
}

TEST(KernelsPageTest, TheCommittedPageHasVariantsForGpus) {
  EXPECT_THAT(Committed(), HasSubstr("\n| `vec4` | cuda | "));
  EXPECT_THAT(Committed(), HasSubstr("\n| `cublaslt` | cuda | "));
}

TEST(KernelsPageTest, EveryNumberAmongTheAttributesHasARange) {
  using Type = AttributeSpec::Type;
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  for (const auto& [name, kernel] : registry.kernels()) {
    for (const AttributeSpec& attribute : kernel.spec.attributes) {
      const bool number = attribute.type == Type::kI64 || attribute.type == Type::kF64;
      EXPECT_TRUE(!number || attribute.range || !attribute.allowed.empty())
          << name << ": " << attribute.name << " wants `in`";
    }
  }
}

TEST(KernelsPageTest, EveryKernelHasAFormulaAndSaysHowExactItIs) {
  for (const auto& [name, def] : BuiltInKernels()) {
    EXPECT_THAT(def.summary, Not(IsEmpty())) << name;
    if (!def.diagnostic) {
      EXPECT_THAT(def.formula, Not(IsEmpty())) << name;
      EXPECT_THAT(def.notes, Not(IsEmpty())) << name;
    }
    for (const auto* variants : {&def.cpu, &def.cuda}) {
      for (const Variant& variant : *variants) {
        EXPECT_THAT(variant.summary, Not(IsEmpty())) << name << "." << variant.name;
      }
    }
  }
}

absl::Status NoLaunch(const Call&) {
  return absl::OkStatus();
}

TEST(KernelsPageTest, ASectionTellsAllOfAKernel) {
  ASSERT_OK_AND_ASSIGN(
      const Registry registry,
      Registry::Create({{"twice",
                         {.words = "x: T[*] -> y: T[*]; n: i64 = 2 in [1, 8] where T in {f32} "
                                   "flops n*numel(x)",
                          .summary = "Each element twice",
                          .formula = "y = |x| `n`",
                          .notes = "One rounding.",
                          .cpu = {{"naive", "A loop", NoLaunch}},
                          .cuda = {{"vec4", "16 bytes", NoLaunch,
                                    "when n == 2 || n == 4 scratch t: u8[n]"}}}}}));
  EXPECT_THAT(KernelsPage(registry, ""), HasSubstr(R"md(
## twice

Each element twice: [`twice.cu`](../kernels/catalog/twice.cu)

| | |
| --- | --- |
| formula | `` y = \|x\| `n` `` |
| takes | `x: T[*]` |
| gives | `y: T[*]` |
| attribute | `n: i64 = 2 in [1, 8]` |
| where | `T in {f32}` |
| flops | `n*numel(x)` |
| bytes | each input once, each output once |
| notes | One rounding. |

| variant | device | what it does | takes | memory beside |
| --- | --- | --- | --- | --- |
| `naive` | cpu | A loop | all |  |
| `vec4` | cuda | 16 bytes | `n == 2 \|\| n == 4` | `t: u8[n]` |
)md"));
}

KernelDef Half(std::vector<Variant> cuda) {
  KernelDef half;
  half.words = "x: T[*] -> y: T[*] where T in {f32}";
  half.cpu = {{"naive", "A loop", NoLaunch}};
  half.cuda = std::move(cuda);
  return half;
}

std::string PageOfHalf(std::vector<Variant> cuda, absl::string_view committed) {
  auto registry = Registry::Create({{"half", Half(std::move(cuda))}});
  return registry.ok() ? KernelsPage(*registry, committed) : registry.status().ToString();
}

const Variant kNaive = {"naive", "One thread", NoLaunch}, kVec4 = {"vec4", "16 bytes", NoLaunch},
              kTf32 = {"cublaslt_tf32", "Its products, rounded", NoLaunch},
              kLibrary = {"cublaslt", "Its products", NoLaunch};

TEST(KernelsPageTest, ABuildWithoutCudaKeepsTheLinesOfGpus) {
  const std::string all = PageOfHalf({kNaive, kVec4, kLibrary}, "");
  EXPECT_NE(PageOfHalf({}, ""), all);
  EXPECT_EQ(PageOfHalf({}, all), all);
}

TEST(KernelsPageTest, APageThatWasWrittenWithoutCudaIsNoneThatABuildWithItRefuses) {
  const std::string without = PageOfHalf({}, ""), with = PageOfHalf({kNaive, kVec4}, "");
  for (const std::string& page : {without, with}) {
    ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(KernelsOfThePage(
                                                      page, {{"half", Half({kNaive, kVec4})}})));
    EXPECT_EQ(KernelsPage(registry, page), page);
  }
  ASSERT_OK_AND_ASSIGN(const Registry other,
                       Registry::Create(KernelsOfThePage(with, {{"half", Half({kNaive})}})));
  EXPECT_NE(KernelsPage(other, with), with) << "a variant that is gone must go from the page";
}

TEST(KernelsPageTest, LinesOfCublasLtStayWhereTheyAreInABuildWithoutIt) {
  const std::string all = PageOfHalf({kTf32, kNaive, kLibrary, kVec4}, "");
  EXPECT_EQ(PageOfHalf({kNaive, kVec4}, all), all);
  EXPECT_EQ(PageOfHalf({kNaive}, all), PageOfHalf({kTf32, kNaive, kLibrary}, ""));
}

TEST(KernelsPageTest, ABuildThatKnowsBetterKeepsNothing) {
  const std::string all = PageOfHalf({kNaive, kTf32, kLibrary}, "");
  const std::string fewer = PageOfHalf({kNaive, kLibrary}, all);
  EXPECT_EQ(fewer, PageOfHalf({kNaive, kLibrary}, ""));
  EXPECT_NE(fewer, all);
}

}  // namespace
}  // namespace gridclock
