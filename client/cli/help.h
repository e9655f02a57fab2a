// The help texts: the blocks marked `help cpu` of docs/cli.md, which is part of this program.
#ifndef GRIDCLOCK_CLIENT_CLI_HELP_H_
#define GRIDCLOCK_CLIENT_CLI_HELP_H_

#include <string>

#include "absl/strings/string_view.h"

namespace gridclock::cli {

// The whole page, as built in.
absl::string_view CliPage();

// The help of a command ("run"), or of the program (""). Empty if the page has none.
std::string HelpOf(absl::string_view page, absl::string_view command);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_HELP_H_
