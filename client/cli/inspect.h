// What each line of a source became: instructions of PTX and of the machine, and what they load and
// store. Pure text in, numbers out.
#ifndef GRIDCLOCK_CLIENT_CLI_INSPECT_H_
#define GRIDCLOCK_CLIENT_CLI_INSPECT_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/json.h"

namespace gridclock::cli {

struct LineCode {
  int ptx = 0, sass = 0;  // Instructions.
  std::map<std::string, int>
      memory;  // "load global 16 B" -> how many of the machine's instructions.
};
// By line of the source, from 1; line 0: what the compiler says of no line of it.
using CodeOfLines = std::map<int, LineCode>;

// `ptx` and `sass` were made with line information; either may be empty. `file` is the source's
// name. Without SASS the memory column is counted from PTX.
CodeOfLines InspectLines(absl::string_view ptx, absl::string_view sass, absl::string_view file);

// Lines of `source` that became code, as a table.
std::string InspectText(const CodeOfLines& lines, absl::string_view source);
Json ToJson(const CodeOfLines& lines);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_INSPECT_H_
