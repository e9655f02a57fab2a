#include "kernels/api/kernels_page.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/types/spec_facts.h"

namespace gridclock {
namespace {

constexpr char kIntro[] = R"md(# Kernels

This page is made from the words of the files in `kernels/catalog`: `gridclock-kernels-doc > docs/kernels.md`, of a build with CUDA. A test holds the two together.

Of a server `gridclock list` and `gridclock describe KERNEL` say the same, for the devices that it has:

```sh cpu
gridclock describe softmax
```

*takes* and *gives* are the operands with their dtypes and shapes, in the language of [signatures.md](signatures.md): `T[*, N]` is a tensor of any number of dimensions whose last is called N, and whose dtype `where` lists; `...` is a list of tensors; `inout` is read, written and returned; `over x` may be computed in x's own buffer. *flops* and *bytes* are what one launch costs; by them results have FLOP/s, GB/s and the share of what the device can do. Each element is computed as the formula says; how exactly, the notes say.

Variants stand plainest first. Without a name the last one of the device that takes the call runs; `--variant` or `KERNEL.VARIANT` names another, and every answer says which ran. What their steps gain is told in [optimizing.md](optimizing.md), what they are compared with in [benchmarks.md](benchmarks.md). The tolerance of a check against the reference follows from dtype and reduction length ([timing.md](timing.md)). [add-a-kernel.md](add-a-kernel.md) adds a kernel.
)md";

constexpr char kDiagnostic[] = R"md(
# Diagnostic kernels

They tell of the device and of the server, and `gridclock list` shows them with `--all` alone.
)md";

// A bar would end the cell.
std::string Cell(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}});
}

std::string Code(absl::string_view text) {
  if (text.empty()) return "";
  if (absl::StrContains(text, '`')) return absl::StrCat("`` ", Cell(text), " ``");
  return absl::StrCat("`", Cell(text), "`");
}

std::string VariantLine(const VariantSpec& variant) {
  const std::string when = TakesText(variant);
  return absl::StrCat("| `", variant.name, "` | ", variant.device_kind, " | ",
                      Cell(variant.summary), " | ", variant.clauses.when ? Code(when) : when, " | ",
                      Code(ScratchText(variant)), " |\n");
}

std::string Section(const KernelSpec& spec) {
  std::string text =
      absl::StrCat("\n## ", spec.name, "\n\n", spec.summary, ": [`", spec.name,
                   ".cu`](../kernels/catalog/", spec.name, ".cu)\n\n| | |\n| --- | --- |\n");
  for (const SpecFact& fact : FactsOf(spec)) {
    absl::StrAppend(&text, "| ", fact.label, " | ",
                    fact.is_prose ? Cell(fact.text) : Code(fact.text), " |\n");
  }
  absl::StrAppend(&text,
                  "\n| variant | device | what it does | takes | memory beside |\n"
                  "| --- | --- | --- | --- | --- |\n");
  for (const VariantSpec& variant : spec.variants) absl::StrAppend(&text, VariantLine(variant));
  return text;
}

std::string Sections(const Registry& registry, bool diagnostic) {
  std::string text;
  for (const auto& [name, kernel] : registry.kernels()) {
    if (kernel.spec.diagnostic == diagnostic) absl::StrAppend(&text, Section(kernel.spec));
  }
  return text;
}

std::string Contents(const Registry& registry) {
  std::string text = "\n| kernel | what it does |\n| --- | --- |\n";
  for (const auto& [name, kernel] : registry.kernels()) {
    absl::StrAppend(&text, "| [", name, "](#", name, ") | ", Cell(kernel.spec.summary), " |\n");
  }
  return text;
}

}  // namespace

std::string KernelsPage(const Registry& registry) {
  return absl::StrCat(kIntro, Contents(registry), Sections(registry, /*diagnostic=*/false),
                      kDiagnostic, Sections(registry, /*diagnostic=*/true));
}

bool IsOfGpu(absl::string_view line) {
  return absl::StrContains(line, "` | cuda | ");
}

}  // namespace gridclock
