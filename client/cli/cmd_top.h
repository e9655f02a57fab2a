#ifndef GRIDCLOCK_CLIENT_CLI_CMD_TOP_H_
#define GRIDCLOCK_CLIENT_CLI_CMD_TOP_H_

#include "client/cli/command.h"

namespace gridclock::cli {

CommandEntry AddTop(CLI::App& program);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_CMD_TOP_H_
