#include "kernels/api/kernels_page.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

// Of the committed page what this build can know: it may be without CUDA, and the machine without
// cuBLASLt, whose variants are there where the library is.
std::string KnownHere(const std::string& committed, const std::string& made) {
  const bool gpu = IsOfGpu(made), library = absl::StrContains(made, kOfCublasLt);
  std::vector<std::string> lines = absl::StrSplit(committed, '\n');
  std::erase_if(lines, [&](const std::string& line) {
    return (!gpu && IsOfGpu(line)) || (!library && absl::StrContains(line, kOfCublasLt));
  });
  return absl::StrJoin(lines, "\n");
}

TEST(KernelsPageTest, TheCommittedPageIsTheWordsOfTheKernels) {
  ASSERT_OK_AND_ASSIGN(const Registry registry, Registry::Create(BuiltInKernels()));
  const std::string made = KernelsPage(registry);
  EXPECT_EQ(KnownHere(Committed(), made), made)
      << "run, of a build with CUDA: gridclock-kernels-doc > docs/kernels.md";
}

TEST(KernelsPageTest, TheCommittedPageHasVariantsForGpus) {
  EXPECT_TRUE(IsOfGpu(Committed()));
  EXPECT_THAT(Committed(), HasSubstr(kOfCublasLt));
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
  EXPECT_THAT(KernelsPage(registry), HasSubstr(R"md(
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

}  // namespace
}  // namespace gridclock
