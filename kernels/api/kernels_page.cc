#include "kernels/api/kernels_page.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "proto/types/spec_facts.h"

namespace gridclock {
namespace {

constexpr char kIntro[] = R"md(# Kernels

This page is made from the words of the files in `kernels/catalog`: `build/dev/bin/gridclock-kernels-doc docs/kernels.md`. A test holds the two together.

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
                      Code(ScratchText(variant)), " |");
}

bool IsOfGpu(absl::string_view line) {
  return absl::StrContains(line, "` | cuda | ");
}

bool IsOfCublasLt(absl::string_view line) {
  return absl::StartsWith(line, "| `cublaslt");
}

using Lines = std::vector<std::string>;

// By kernel, the lines of its variants for GPUs.
using GpuLines = std::map<std::string, Lines>;

GpuLines GpuLinesOf(absl::string_view page) {
  GpuLines lines;
  std::string kernel;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "## ")) kernel = std::string(line.substr(3));
    if (IsOfGpu(line)) lines[kernel].emplace_back(line);
  }
  return lines;
}

// Those of cuBLASLt put among `made`, each behind the line that it stands behind in `committed`.
Lines WithCublasLt(Lines made, const Lines& committed) {
  auto place = made.begin();
  for (const std::string& line : committed) {
    if (IsOfCublasLt(line)) {
      place = std::next(made.insert(place, line));
    } else if (const auto same = std::find(made.begin(), made.end(), line); same != made.end()) {
      place = std::next(same);
    }
  }
  return made;
}

// What the committed page has of GPUs, as far as this build cannot know better.
class Committed {
 public:
  Committed(const Registry& registry, absl::string_view page) : lines_(GpuLinesOf(page)) {
    for (const auto& [name, kernel] : registry.kernels()) {
      for (const VariantSpec& variant : kernel.spec.variants) {
        has_cuda_ |= variant.device_kind == "cuda";
        has_cublaslt_ |= absl::StartsWith(variant.name, "cublaslt");
      }
    }
  }

  Lines Complete(const std::string& kernel, Lines made) const {
    const auto lines = lines_.find(kernel);
    if (lines == lines_.end() || has_cublaslt_) return made;
    return has_cuda_ ? WithCublasLt(std::move(made), lines->second) : lines->second;
  }

 private:
  GpuLines lines_;
  bool has_cuda_ = false, has_cublaslt_ = false;
};

std::string VariantLines(const KernelSpec& spec, const Committed& committed) {
  std::string text;
  Lines of_gpu;
  for (const VariantSpec& variant : spec.variants) {
    const std::string line = VariantLine(variant);
    if (IsOfGpu(line)) {
      of_gpu.push_back(line);
    } else {
      absl::StrAppend(&text, line, "\n");
    }
  }
  for (const std::string& line : committed.Complete(spec.name, std::move(of_gpu))) {
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string Section(const KernelSpec& spec, const Committed& committed) {
  std::string text =
      absl::StrCat("\n## ", spec.name, "\n\n", spec.summary, ": [`", spec.name,
                   ".cu`](../kernels/catalog/", spec.name, ".cu)\n\n| | |\n| --- | --- |\n");
  for (const SpecFact& fact : FactsOf(spec)) {
    absl::StrAppend(&text, "| ", fact.label, " | ",
                    fact.is_prose ? Cell(fact.text) : Code(fact.text), " |\n");
  }
  absl::StrAppend(&text,
                  "\n| variant | device | what it does | takes | memory beside |\n"
                  "| --- | --- | --- | --- | --- |\n",
                  VariantLines(spec, committed));
  return text;
}

std::string Sections(const Registry& registry, const Committed& committed, bool diagnostic) {
  std::string text;
  for (const auto& [name, kernel] : registry.kernels()) {
    if (kernel.spec.diagnostic == diagnostic)
      absl::StrAppend(&text, Section(kernel.spec, committed));
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

std::string KernelsPage(const Registry& registry, absl::string_view committed) {
  const Committed known(registry, committed);
  return absl::StrCat(kIntro, Contents(registry), Sections(registry, known, /*diagnostic=*/false),
                      kDiagnostic, Sections(registry, known, /*diagnostic=*/true));
}

}  // namespace gridclock
