// The file that says where the server listens, once calls can be served.
#ifndef GRIDCLOCK_SERVER_READY_FILE_H_
#define GRIDCLOCK_SERVER_READY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gridclock {

// Written beside and renamed, so that who sees it sees all of it. An error says the flag and why.
absl::Status WriteReadyFile(const std::string& path, absl::string_view text);

// Whether it could be written, without doing so: who waits for the file would wait for ever.
absl::Status CheckReadyFile(const std::string& path);

}  // namespace gridclock

#endif  // GRIDCLOCK_SERVER_READY_FILE_H_
