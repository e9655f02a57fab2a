#include "server/ready_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace gridclock {
namespace {

absl::Status Failed(int error, const std::string& path) {
  return ErrnoToStatus(error, absl::StrCat("--ready-file: cannot write '", path, "'"));
}

std::string Beside(const std::string& path) {
  return absl::StrCat(path, ".", getpid());
}

absl::Status WriteBeside(const std::string& path, absl::string_view text) {
  errno = 0;
  std::ofstream file(Beside(path));
  file << text << std::flush;
  if (file) return absl::OkStatus();
  absl::Status failed = Failed(errno, path);
  unlink(Beside(path).c_str());  // Of a disk that is full, what found room.
  return failed;
}

}  // namespace

absl::Status WriteReadyFile(const std::string& path, absl::string_view text) {
  GC_RETURN_IF_ERROR(WriteBeside(path, text));
  if (std::rename(Beside(path).c_str(), path.c_str()) == 0) return absl::OkStatus();
  absl::Status failed = Failed(errno, path);
  unlink(Beside(path).c_str());
  return failed;
}

absl::Status CheckReadyFile(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return Failed(EISDIR, path);
  GC_RETURN_IF_ERROR(WriteBeside(path, ""));
  unlink(Beside(path).c_str());
  return absl::OkStatus();
}

}  // namespace gridclock
