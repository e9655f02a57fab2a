// Any bytes as a .cu file: what is set aside leaves every line and column where it was, nothing but
// blanks is new, and notes name lines that are there. The same bytes as a log: text for clients is
// clean.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/text.h"
#include "kernels/compiler/host_code.h"
#include "kernels/compiler/parameters.h"
#include "kernels/compiler/ptxas_log.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  gridclock::SourceContext context{.known = {"known.h"}};
  const absl::string_view texts[] = {source};
  context.host_types = gridclock::HostTypesIn(texts, context);
  const gridclock::DeviceSource got = gridclock::SetHostCodeAside(source, context);
  FUZZ_CHECK(got.text.size() == source.size());
  for (std::size_t i = 0; i < size; ++i) FUZZ_CHECK(got.text[i] == source[i] || got.text[i] == ' ');
  FUZZ_CHECK(std::count(got.text.begin(), got.text.end(), '\n') ==
             std::count(source.begin(), source.end(), '\n'));
  const auto lines = std::count(source.begin(), source.end(), '\n') + 1;
  for (const gridclock::SourceNote& note : got.notes) {
    FUZZ_CHECK(note.first_line >= 1 && note.first_line <= note.last_line);
    FUZZ_CHECK(note.last_line <= lines);
  }
  const std::string clean = gridclock::CleanText(source);
  FUZZ_CHECK(gridclock::CleanText(clean) == clean);
  gridclock::ReadPtxasLog(source);
  std::vector<gridclock::ModuleEntry> entries(2);
  entries[0].name = entries[0].display = "f";
  entries[1].name = source.substr(0, source.find('\n'));
  for (gridclock::ModuleEntry& entry : entries) entry.parameters.resize(2);
  gridclock::DescribeParameters(source, &entries);
  FUZZ_CHECK(entries[0].parameters[1].name.size() <= 128);
  return 0;
}
