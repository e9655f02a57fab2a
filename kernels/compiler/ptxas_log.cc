#include "kernels/compiler/ptxas_log.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gridclock {
namespace {

// The number before `what` in "0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads".
std::uint64_t BytesOf(absl::string_view line, absl::string_view what) {
  for (absl::string_view part : absl::StrSplit(line, ',')) {
    std::uint64_t value = 0;
    if (!absl::EndsWith(part, what)) continue;
    const std::vector<absl::string_view> words = absl::StrSplit(part, ' ', absl::SkipEmpty());
    for (const absl::string_view word : words) {
      if (absl::SimpleAtoi(word, &value)) return value;
    }
  }
  return 0;
}

// What is told of every entry, and read from the cubin.
bool IsOfResources(absl::string_view text) {
  return absl::StartsWith(text, "Compiling entry function ") || absl::StartsWith(text, "Used ") ||
         absl::StrContains(text, " bytes gmem");
}

}  // namespace

PtxasLog ReadPtxasLog(absl::string_view log) {
  PtxasLog out;
  std::string function;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    absl::string_view rest = line;
    if (absl::ConsumePrefix(&rest, "ptxas info    : ")) {
      double took = 0;
      if (absl::ConsumePrefix(&rest, "Function properties for ")) {
        function = std::string(rest);
      } else if (absl::ConsumePrefix(&rest, "Compile time = ") &&
                 absl::ConsumeSuffix(&rest, " ms") && absl::SimpleAtod(rest, &took)) {
        out.milliseconds += took;
      } else if (!IsOfResources(rest)) {
        absl::StrAppend(&out.rest, line, "\n");
      }
    } else if (absl::StartsWith(line, "ptxas         . ") || absl::StartsWith(line, "    ")) {
      if (!absl::StrContains(line, "bytes spill stores")) {
        absl::StrAppend(&out.rest, line, "\n");
        continue;
      }
      out.spills[function] = {BytesOf(line, "bytes spill stores"),
                              BytesOf(line, "bytes spill loads")};
    } else {
      absl::StrAppend(&out.rest, line, "\n");
    }
  }
  while (absl::EndsWith(out.rest, "\n\n") || out.rest == "\n") out.rest.pop_back();
  return out;
}

}  // namespace gridclock
