// Which kernel of a module a name means.
#ifndef GRIDCLOCK_PROTO_TYPES_FIND_ENTRY_H_
#define GRIDCLOCK_PROTO_TYPES_FIND_ENTRY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/types/module.h"

namespace gridclock {

// The one that linkers call so ("_Z1fPf"), or all that people do ("f", "soft<float, 256>"; blanks
// do not count): overloaded functions share a name.
std::vector<const ModuleEntry*> FindEntries(const ModuleFacts& facts, absl::string_view name);

// "'_Z1fPf', '_Z1fPi'": at most eight, by the names that tell them apart.
std::string LinkerNames(const std::vector<const ModuleEntry*>& entries);

}  // namespace gridclock

#endif  // GRIDCLOCK_PROTO_TYPES_FIND_ENTRY_H_
