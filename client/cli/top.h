// What `gridclock top` draws of a server's JSON pages.
#ifndef GRIDCLOCK_CLIENT_CLI_TOP_H_
#define GRIDCLOCK_CLIENT_CLI_TOP_H_

#include <string>
#include <vector>

#include "client/cli/json.h"
#include "client/cli/terminal.h"

namespace gridclock::cli {

// Lines for people, no wider than the terminal and no more than it has. What is missing in `status`
// (/status.json) or in `runs` (/runs.json) is left out or a dash: another version may have sent
// them.
std::string TopText(const std::string& server, const Json& status, const Json& runs,
                    const Terminal& terminal);

// A column for each value, the tallest the largest; a blank where there is none (0).
std::string Bars(const std::vector<double>& values);

}  // namespace gridclock::cli

#endif  // GRIDCLOCK_CLIENT_CLI_TOP_H_
