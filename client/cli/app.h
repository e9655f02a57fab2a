// The command line `gridclock` as a library: main only calls this.
#ifndef GRIDCLOCK_CLIENT_CLI_APP_H_
#define GRIDCLOCK_CLIENT_CLI_APP_H_

#include <string>
#include <vector>

#include "client/cli/terminal.h"

namespace gridclock::cli {

enum ExitCode : int {
  kOk = 0,
  kFailed = 1,       // The server or this program answered with an error, or could not print.
  kUsage = 2,        // The command line is wrong.
  kUnreachable = 3,  // No server there.
  kMismatch = 4,     // The values differ from the reference.
};

// `args` without the program's name. Never throws.
int Main(const std::vector<std::string>& args, Console& console);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_APP_H_
