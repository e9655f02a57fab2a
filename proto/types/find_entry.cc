#include "proto/types/find_entry.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "proto/types/quote.h"

namespace gridclock {
namespace {

std::string WithoutSpaces(absl::string_view text) {
  return absl::StrReplaceAll(text, {{" ", ""}});
}

}  // namespace

std::vector<const ModuleEntry*> FindEntries(const ModuleFacts& facts, absl::string_view name) {
  const std::string display = WithoutSpaces(name);
  std::vector<const ModuleEntry*> found;
  for (const ModuleEntry& entry : facts.entries) {
    if (entry.name == name) return {&entry};
    if (WithoutSpaces(entry.display) == display) found.push_back(&entry);
  }
  return found;
}

std::string LinkerNames(const std::vector<const ModuleEntry*>& entries) {
  constexpr std::size_t kListed = 8;
  const auto listed = std::span(entries).first(std::min(kListed, entries.size()));
  const std::string names = absl::StrJoin(
      listed, ", ",
      [](std::string* out, const ModuleEntry* entry) { absl::StrAppend(out, Quote(entry->name)); });
  return absl::StrCat(names, entries.size() > kListed ? ", ..." : "");
}

}  // namespace gridclock
