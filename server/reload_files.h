// Which files a server reads again when it is told to, and what its log says of that.
#ifndef GRIDCLOCK_SERVER_RELOAD_FILES_H_
#define GRIDCLOCK_SERVER_RELOAD_FILES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "server/core/reloader.h"
#include "server/options.h"

namespace gridclock {

// The parts of a server with these options, which put what they read in force in `security`. All
// are borrowed until no reload runs.
void AddFiles(const ServerOptions& options, Security& security, Reloader& reloader);

// A line for each part; none for a reload that nobody waits for any more.
void LogReload(const absl::StatusOr<std::vector<Reloader::Part>>& parts);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_RELOAD_FILES_H_
