// What each line of a source became: instructions of PTX and of the machine, and what they load and
// store. Pure text in, numbers and text out.
#ifndef GRIDCLOCK_CLIENT_CLI_INSPECT_H_
#define GRIDCLOCK_CLIENT_CLI_INSPECT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/json.h"
#include "client/cli/terminal.h"

namespace gridclock::cli {

struct LineCode {
  std::vector<std::string> ptx, sass;  // Instructions; "0010 LDG.E R4, ..." has its address.
  std::map<std::string, int>
      memory;  // "load global 16 B" -> how many of the machine's instructions.
};
// By line of the source, from 1; line 0: what the compiler says of no line of it.
using CodeOfLines = std::map<int, LineCode>;

// `ptx` and `sass` were made with line information; either may be empty. `file` is the source's
// name. Without SASS the memory column is counted from PTX.
CodeOfLines InspectLines(absl::string_view ptx, absl::string_view sass, absl::string_view file);

// Which instructions are shown one by one.
struct CodeShown {
  bool ptx = false, sass = false;
};

// Lines of `source` that became code, as a table; what is shown stands under its line.
std::string InspectText(const CodeOfLines& lines, absl::string_view source, CodeShown shown,
                        const Terminal& terminal);
Json ToJson(const CodeOfLines& lines, CodeShown shown);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_INSPECT_H_
