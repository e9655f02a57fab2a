// The log: one event, one line, on stderr. `event` is a fixed word, fields are key and value;
// values are escaped, so that no client can forge a line or colour a terminal.
#ifndef GRIDCLOCK_BASE_LOG_H_
#define GRIDCLOCK_BASE_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gridclock {

enum class LogLevel { kInfo, kWarning, kError };

using LogField = std::pair<absl::string_view, std::string>;

// Log(LogLevel::kInfo, "worker_ready", {{"device", "cpu"}, {"pid", absl::StrCat(pid)}});
// Never blocks on the reader of stderr: of more lines than a bounded queue holds the oldest are
// dropped and counted. Of one event it takes a burst, then a few lines a second (LogLimit); how
// many were left out stands in the next one.
void Log(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields = {});
// What somebody with a role did: no limit leaves a line out, and no flood of other lines drops it,
// as these wait in a queue of their own.
void LogAudit(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields = {});
// One line for each event of which lines were left out and none came for some seconds. Call now and
// then.
void LogLeftOut();
// INVALID_ARGUMENT where GRIDCLOCK_LOG_FORMAT is no form of the log.
absl::Status CheckLogFormat();
// Of both kinds.
std::uint64_t DroppedLogLines();

// Waits until the lines so far are written, or `limit` is over because nobody reads them. exit()
// does so by itself, _exit() does not.
void FlushLog(absl::Duration limit = absl::Seconds(1));

}  // namespace gridclock

#endif  // GRIDCLOCK_BASE_LOG_H_
