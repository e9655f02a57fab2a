#ifndef GRIDCLOCK_CLIENT_CLI_CMD_ADMIN_H_
#define GRIDCLOCK_CLIENT_CLI_CMD_ADMIN_H_

#include "client/cli/command.h"

namespace gridclock::cli {

CommandEntry AddAdmin(CLI::App& program);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_CMD_ADMIN_H_
