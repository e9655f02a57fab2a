#ifndef GRIDCLOCK_CLIENT_CLI_CMD_MODULES_H_
#define GRIDCLOCK_CLIENT_CLI_CMD_MODULES_H_

#include "client/cli/command.h"

namespace gridclock::cli {

CommandEntry AddModules(CLI::App& program);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_CMD_MODULES_H_
